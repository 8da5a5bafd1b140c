//! Refuses keys that apply only to loads: an index build and messages would ignore them.

use super::problems::Problems;
use crate::model::Plan;

/// Checks that the plan of an index build or of messages does not set keys of a load.
pub(super) fn check_load_only(problems: &mut Problems, plan: &Plan) {
    let (what, rate, wait) = match (&plan.index_build, &plan.tail) {
        (Some(_), _) => ("an index build", LEAVE_OUT, LEAVE_OUT),
        (None, Some(_)) => (
            "messages",
            "use `tail.rate_per_s` for the rate of messages",
            "use `tail.work` for a consumer's time per message",
        ),
        (None, None) => return,
    };
    let parameters = "use `server.parameters` to set them at the start of a server";
    problems.require_or(
        "server.runtime_parameters",
        plan.server.runtime_parameters.is_empty(),
        parameters,
        "apply only to a load",
    );
    let lasting = "use `dyno doctor --apply` for permanent settings";
    problems.require_or(
        "server.host_settings",
        plan.server.host_settings.is_empty(),
        lasting,
        "apply only to a load",
    );
    problems.require_or("schedule.kind", plan.schedule.rate_per_s().is_none(), rate, || {
        format!("has no effect on {what}: it sets when the operations of a load start")
    });
    let client = &plan.client;
    let has_think_time = client.think_time.is_some();
    problems.require_or("client.think_time", !has_think_time, wait, || {
        format!("has no effect on {what}: it applies to the clients of a load")
    });
    problems.require_or("observe.exporters", plan.observe.exporters.is_empty(), LEAVE_OUT, || {
        format!("have no effect on {what}: they are read during a load")
    });
}

/// Hint for keys without a counterpart.
const LEAVE_OUT: &str = "remove it";

#[cfg(test)]
mod tests {
    use crate::file;

    /// The problems of an index build plan and of a plan for messages.
    fn refused(text: &str) -> [String; 2] {
        ["index_build", "tail"].map(|table| {
            let text = format!("{text}\n[{table}]\n");
            file::parse(&text, "t").expect_err(&text).to_string()
        })
    }

    #[test]
    fn keys_of_loads_are_refused_in_other_plans() {
        let exporter = "[[observe.exporters]]\nname = \"node\"\nurl = \"http://h:1/metrics\"";
        for (text, key) in [
            ("client.think_time = \"5ms\"", "client.think_time"),
            ("[schedule]\nkind = \"throttled\"\nrate_per_s = 5", "schedule.kind"),
            ("[schedule]\nkind = \"poisson\"\nrate_per_s = 5", "schedule.kind"),
            (exporter, "observe.exporters"),
            ("server.runtime_parameters.x = \"1\"", "server.runtime_parameters"),
            ("server.host_settings.swappiness = \"1\"", "server.host_settings"),
        ] {
            let [index_build, tail] = refused(text);
            assert!(index_build.contains(&format!("`{key}`")), "{index_build}");
            assert!(tail.contains(&format!("`{key}`")), "{tail}");
        }
    }

    #[test]
    fn explicit_closed_loop_is_accepted() {
        for table in ["index_build", "tail"] {
            let text = format!("schedule.kind = \"closed\"\n[{table}]\n");
            assert!(file::parse(&text, "t").is_ok());
        }
    }
}
