"""A daemon for measurements: started, asked for its metrics, stopped."""

import http.client
import subprocess


class Daemon:
    """A daemon that is ready when this is made."""

    def __init__(self, program, config):
        self.process = subprocess.Popen([program, "ingest", "serve", config], stdout=subprocess.PIPE, text=True)
        self.addresses = {}
        for line in self.process.stdout:
            if line.strip() == "ready":
                break
            name, address = line.split()[:2]
            self.addresses[name] = address

    def metric(self, name):
        """The sum of a metric, whatever its labels."""
        admin = http.client.HTTPConnection(self.addresses["admin"])
        admin.request("GET", "/metrics")
        lines = admin.getresponse().read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def stop(self):
        self.process.terminate()
        self.process.wait()
