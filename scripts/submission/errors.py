"""What a user is told when no submission can be made."""


class Refused(Exception):
    """The message reads `argument: observed; rule`."""
