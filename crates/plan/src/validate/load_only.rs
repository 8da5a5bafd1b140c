//! Keys that only a load has: an index build and messages would ignore them.

use super::problems::Problems;
use crate::model::Plan;

/// Refuses, of an index build and of messages, what nothing would set, wait for or read.
pub(super) fn check_load_only(problems: &mut Problems, plan: &Plan) {
    let (what, rate, wait) = match (&plan.index_build, &plan.tail) {
        (Some(_), _) => ("an index build", LEAVE_OUT, LEAVE_OUT),
        (None, Some(_)) => (
            "messages",
            "`tail.rate_per_s` is the rate of messages",
            "`tail.work` is what a consumer spends on each message",
        ),
        (None, None) => return,
    };
    let parameters = "`server.parameters` are given to a server when it is started";
    problems.require_or(
        plan.server.runtime_parameters.is_empty(),
        parameters,
        || "`server.runtime_parameters` are set for a load, and this is none".into(),
    );
    let lasting = "`dyno doctor --apply` makes settings that last";
    problems.require_or(plan.server.host_settings.is_empty(), lasting, || {
        "`server.host_settings` are set for a load, and this is none".into()
    });
    problems.require_or(plan.schedule.rate_per_s().is_none(), rate, || {
        format!(
            "`schedule.kind` has no effect on {what}: it says when the operations of a load start"
        )
    });
    let client = &plan.client;
    let has_think_time = client.think_time.is_some();
    problems.require_or(!has_think_time, wait, || {
        format!("`client.think_time` has no effect on {what}: it is that of the clients of a load")
    });
    problems.require_or(plan.observe.exporters.is_empty(), LEAVE_OUT, || {
        format!("`observe.exporters` have no effect on {what}: they are read while a load goes on")
    });
}

/// Of keys that have no counterpart.
const LEAVE_OUT: &str = "leave it out";

#[cfg(test)]
mod tests {
    use crate::file;

    /// What is said of a plan for an index build, and of one for messages.
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
            (
                "[schedule]\nkind = \"throttled\"\nrate_per_s = 5",
                "schedule.kind",
            ),
            (
                "[schedule]\nkind = \"poisson\"\nrate_per_s = 5",
                "schedule.kind",
            ),
            (exporter, "observe.exporters"),
            (
                "server.runtime_parameters.x = \"1\"",
                "server.runtime_parameters",
            ),
            (
                "server.host_settings.swappiness = \"1\"",
                "server.host_settings",
            ),
        ] {
            let [index_build, tail] = refused(text);
            assert!(index_build.contains(&format!("`{key}`")), "{index_build}");
            assert!(tail.contains(&format!("`{key}`")), "{tail}");
        }
    }

    #[test]
    fn an_explicit_closed_loop_is_accepted() {
        for table in ["index_build", "tail"] {
            let text = format!("schedule.kind = \"closed\"\n[{table}]\n");
            assert!(file::parse(&text, "t").is_ok());
        }
    }
}
