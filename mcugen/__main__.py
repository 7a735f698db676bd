"""``python -m mcugen``: the same as the command ``mcugen``."""

from mcugen.cli import main

main()
