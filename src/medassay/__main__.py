"""`python -m medassay`."""

from medassay.cli.main import main

main()
