"""From a float net and data to integers: ranges, scales, and the lowering to machine ops."""
