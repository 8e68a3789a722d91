"""Gates: whether what a night changed is published without asking.

The correctness conditions say whether a state is right; gates say whether it is expected. A gate that fails refuses the
night until its cause is gone or a person accepts it for one run. Judging is pure (`judge`), over what `measure` reads.
"""
