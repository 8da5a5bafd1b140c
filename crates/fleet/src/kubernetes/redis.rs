//! The meeting point: one Redis without a disk, with the password from its `Secret`.

use super::input::{REDIS, RenderInput, SECRET, container_security, pod_security};
use serde_json::{Value, json};

pub(super) fn objects(input: &RenderInput<'_>) -> Vec<Value> {
    // The password goes from the shell's environment to Redis by standard input, not by arguments.
    let command = "printf 'requirepass %s\\nsave \"\"\\nappendonly no\\nmaxmemory 1gb\\nmaxmemory-policy noeviction\\ndir /tmp\\n' \
                   \"$DYNO_REDIS_PASSWORD\" | exec redis-server -";
    let selector = input.labels("redis");
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": input.metadata(REDIS, "redis"),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": selector},
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": pod_security(999),
                    "containers": [{
                        "name": "redis",
                        "image": input.kubernetes.redis_image,
                        "command": ["sh", "-ec", command],
                        "env": [{
                            "name": "DYNO_REDIS_PASSWORD",
                            "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "password"}},
                        }],
                        "ports": [{"name": "redis", "containerPort": 6379}],
                        "readinessProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 2},
                        "resources": {
                            "requests": {"cpu": "1", "memory": "1536Mi"},
                            "limits": {"cpu": "1", "memory": "1536Mi"},
                        },
                        "securityContext": container_security(),
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
                },
            },
        },
    });
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": input.metadata(REDIS, "redis"),
        "spec": {
            "selector": selector,
            "ports": [{"name": "redis", "port": 6379, "targetPort": "redis"}],
        },
    });
    vec![deployment, service]
}
