"""What a harness says no to; the message reads 'what: observed; rule'."""


class Fault(Exception):
    """A submission, or its output, that cannot pass."""
