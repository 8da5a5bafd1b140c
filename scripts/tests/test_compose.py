"""deploy/compose.yaml against its mounted files: addresses and ports match between its services. Docker
itself is not available everywhere.

    python3 -m unittest discover --quiet scripts/tests
"""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path
from urllib.parse import urlsplit

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
# Ansible's Python has a YAML parser.
PYTHON = PROJECT / ".cache/python/bin/python"
TO_JSON = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"


def parsed(text):
    result = subprocess.run([PYTHON, "-c", TO_JSON], input=text, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def text_of(path):
    return (DEPLOY / path).read_text(encoding="utf-8")


def with_proposal(text, first):
    """The text with the optional part that begins with this comment uncommented."""
    before, rest = text.split(f"  # {first}")
    lines = f"  # {first}{rest}".split("\n\n")
    proposed = re.sub(r"(?m)^  # ", "  ", lines[0])
    return before + "\n\n".join([proposed, *lines[1:]])


def target_of(prometheus, job):
    """The address at which Prometheus reads a job."""
    jobs = {one["job_name"]: one for one in prometheus["scrape_configs"]}
    ((target,),) = [group["targets"] for group in jobs[job]["static_configs"]]
    return target


class Service:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def mounts(self):
        """Mounts: paths on this machine or volume names, and paths in the container."""
        mounts = [mount.split(":") for mount in self.value["volumes"]]
        return {source: target for source, target, *_ in mounts}

    def option(self, name):
        (value,) = [word.removeprefix(f"{name}=") for word in self.value["command"] if word.startswith(f"{name}=")]
        return value


class ComposeTest(unittest.TestCase):
    def setUp(self):
        if not PYTHON.exists():
            reason = "no Python that reads YAML: run `scripts/setup.sh test`"
            if "DYNO_SKIP_LOG" in os.environ:
                with open(os.environ["DYNO_SKIP_LOG"], "a", encoding="utf-8") as log:
                    log.write(f"{os.getpid()}\t{self.id()}\t{reason}\n")
            self.skipTest(reason)
        self.text = text_of("compose.yaml")
        self.compose = parsed(self.text)
        self.services = {name: Service(name, value) for name, value in self.compose["services"].items()}
        self.prometheus = parsed(text_of("prometheus/prometheus.yml"))

    def test_services_are_pinned_and_reached_from_this_machine_alone(self):
        self.assertEqual(sorted(self.services), ["grafana", "node_exporter", "prometheus"])
        for service in self.services.values():
            with self.subTest(service.name):
                self.assertRegex(service.value["image"], r":v?\d+\.\d+\.\d+$")
                # With the host network, the addresses below are addresses of this machine.
                self.assertEqual(service.value["network_mode"], "host")
                self.assertNotIn("ports", service.value)
        for name in ["prometheus", "node_exporter"]:
            self.assertRegex(self.services[name].option("--web.listen-address"), r"^127\.0\.0\.1:\d+$")
        self.assertEqual(self.services["grafana"].value["environment"]["GF_SERVER_HTTP_ADDR"], "127.0.0.1")

    def test_mounted_files_exist_and_are_read_only(self):
        volumes = set()
        for service in self.services.values():
            for mount in service.value["volumes"]:
                source, _, *options = mount.split(":")
                with self.subTest(mount):
                    if not source.startswith((".", "/")):
                        volumes.add(source)
                        continue
                    self.assertTrue((DEPLOY / source).exists())
                    self.assertIn("ro", options[0].split(","))
        self.assertEqual(volumes, set(self.compose["volumes"]))

    def test_prometheus_reads_its_file_and_the_other_services(self):
        prometheus, node = self.services["prometheus"], self.services["node_exporter"]
        mounts = prometheus.mounts()
        self.assertEqual(prometheus.option("--config.file"), mounts["./prometheus/prometheus.yml"])
        self.assertEqual(prometheus.option("--storage.tsdb.path"), mounts["prometheus"])
        self.assertEqual(node.option("--path.rootfs"), node.mounts()["/"])
        self.assertEqual(target_of(self.prometheus, "node"), node.option("--web.listen-address"))
        # The file names the option by which a run serves its metrics there.
        self.assertIn(f"`dyno --metrics {target_of(self.prometheus, 'dyno')}`", self.text)

    def test_grafana_finds_its_dashboards_and_prometheus(self):
        mounts = self.services["grafana"].mounts()
        # The path at which the image expects it.
        self.assertEqual(mounts["./grafana/provisioning"], "/etc/grafana/provisioning")
        dashboards = parsed(text_of("grafana/provisioning/dashboards/mongodyno.yaml"))
        (provider,) = dashboards["providers"]
        self.assertEqual(provider["options"]["path"], mounts["./grafana/dashboards"])
        sources = parsed(text_of("grafana/provisioning/datasources/prometheus.yaml"))
        (source,) = sources["datasources"]
        listens = self.services["prometheus"].option("--web.listen-address")
        self.assertEqual(urlsplit(source["url"]).netloc, listens)

    def test_optional_exporter_serves_the_prometheus_address(self):
        compose = parsed(with_proposal(self.text, "mongodb_exporter:"))
        exporter = Service("mongodb_exporter", compose["services"]["mongodb_exporter"])
        self.assertEqual(exporter.value["network_mode"], "host")
        prometheus = parsed(with_proposal(text_of("prometheus/prometheus.yml"), "- job_name: mongodb"))
        self.assertEqual(target_of(prometheus, "mongodb"), exporter.option("--web.listen-address"))
        self.assertEqual(set(compose["services"]), {*self.services, "mongodb_exporter"})


if __name__ == "__main__":
    unittest.main()
