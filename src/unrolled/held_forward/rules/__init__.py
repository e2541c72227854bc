"""Rules: what a held run computes in place of an operation. A file holds those of one kind, and is found by listing."""

from importlib import import_module
from pkgutil import iter_modules

for module in iter_modules(__path__):
    import_module(f"{__name__}.{module.name}")
