# SPDX-License-Identifier: Apache-2.0
"""
An arm watched over months: drive terms of each motion, their history, and what it says.

A line imports only lines above it: motion_terms; ageing; history; motions; jobs.
"""
