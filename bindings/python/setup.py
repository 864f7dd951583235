"""The compiled part of the package, which the rest of pyproject.toml cannot describe."""

from setuptools import setup

setup(cffi_modules=["build_store.py:builder"])
