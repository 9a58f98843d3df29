#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The big or slow clients of clients/*.py: Go, Java, PostgreSQL."""
import os, runpy
os.environ["MANYCORE_CLIENTS"] = "nightly"
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "test_clients.py"), run_name="__main__")
