//! The program from end to end: exit codes, files, and what it says.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

mod allowed_cpus;
mod authority;
mod chaos;
mod common;
mod compare_history;
mod costs;
mod costs_truth;
mod dealt_documents;
mod dependencies;
mod doctor;
mod elsewhere;
mod experiment_input;
mod experiment_reports;
mod experiment_searches;
mod experiments;
mod export;
mod exported_records;
mod fleet;
mod fleet_dry;
mod fleet_hosts;
mod fleet_local;
mod fleet_pods;
mod grafana;
mod host_settings;
mod index_build;
mod input;
mod install;
mod interrupts;
mod joined_servers;
mod laws;
mod measured_run;
mod metric_names;
mod metrics;
mod outages;
mod pairs;
mod plans;
mod prometheus;
mod reached;
mod real_mongod;
mod real_server;
mod record_changes;
mod recorded_plans;
mod responder;
mod runtime_parameters;
mod soak;
mod standing;
mod storage;
mod suite;
mod tail;
mod tail_hosts;
mod topologies;
mod trace;
mod tune;
mod unfit_collections;
mod wsf;
mod ycsb;
