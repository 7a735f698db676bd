"""Dead channels of quantized nets: what is constant or unread goes, with all that fed it. The same bits come out."""
