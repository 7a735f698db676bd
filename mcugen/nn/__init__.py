"""Neural nets: source ops with a float meaning, quantization, machine ops on integers, passes between them."""
