#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_stress.py at full length: 10,000 processes, 200 rounds of killing."""
import os, runpy
os.environ["MANYCORE_STRESS"] = "full"
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "test_stress.py"), run_name="__main__")
