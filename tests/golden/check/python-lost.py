import os
try:
    import maybe_absent
except ImportError:
    pass
from nowhere_to_be_found.inner import thing

open("ran", "w")
