"""mcugen: trained models to verified, quantized C for microcontrollers."""

__version__ = "0.1.0"
