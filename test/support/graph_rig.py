# SPDX-License-Identifier: Apache-2.0
"""A node of a test, and others beside it in this process, in a domain of their own."""

import time

import domains
import pytest
import rclpy
from fair_spinning import STEP, spin_until
from rclpy.executors import SingleThreadedExecutor


class GraphRig:
    """
    Holds a context with the nodes of a test, and spins them until something has happened.

    Parameters
    ----------
    name : str
        Of the test's own node.
    domain : int
        One that is shared; None claims one.

    Attributes
    ----------
    report : dict
    log : str
        What is shown where something did not happen.
    patience : float
        For anything that must happen; a loaded machine may take long [s].
    """

    report, log = {}, ''
    patience = 60.0

    def __init__(self, name='test', domain=None):
        self._is_shared = domain is not None
        self.domain = domain if self._is_shared else domains.claim()
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self.domain)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.node = self.join(name)

    def join(self, name):
        """Return a new node of this name."""
        return self.add(rclpy.create_node(name, context=self.context))

    def add(self, node):
        """Take in a node of this context, which is spun from now on."""
        self.executor.add_node(node)
        return node

    def close(self):
        """Leave the graph."""
        nodes = self.executor.get_nodes()
        self.executor.shutdown()
        for node in nodes:
            node.destroy_node()
        rclpy.shutdown(context=self.context)
        if not self._is_shared:
            domains.release(self.domain)

    def until(self, condition, doing=None, patience=None):
        """Spin, doing something again and again, until the condition holds; fail if it never."""
        deadline = time.monotonic() + (self.patience if patience is None else patience)
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f'waited in vain: {self.report}; the log:\n{self.log}')
            if doing is not None:
                doing()
            self.spin(STEP)

    def spin(self, duration):
        """Take in messages for a while [s]."""
        spin_until(self.executor, time.monotonic() + duration)

    def until_subscribed(self, publisher):
        """Wait until somebody has subscribed to a topic."""
        self.until(lambda: publisher.get_subscription_count() > 0)

    def call(self, kind, name, request, doing=None):
        """Return the answer of a service."""
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready, doing)
        future = client.call_async(request)
        self.until(future.done, doing)
        self.node.destroy_client(client)
        return future.result()
