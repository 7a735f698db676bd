"""The version, apart from everything, so that any stage can name it."""

VERSION = "0.1.0"
