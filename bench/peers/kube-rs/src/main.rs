// SPDX-License-Identifier: Apache-2.0

//! The kube-rs way: a Controller over a DynamicObject; what changes without a new generation is passed over.
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};

struct Context {
    client: Client,
    resource: ApiResource,
    count: File,
    status: bool,
    seen: Mutex<HashMap<String, i64>>,
}

async fn reconcile(object: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let generation = object.metadata.generation.unwrap_or_default();
    if context.seen.lock().expect("no panic").insert(object.name_any(), generation) == Some(generation) {
        return Ok(Action::await_change());
    }
    if context.status {
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), &namespace, &context.resource);
        let status = serde_json::json!({"status": {"seen": object.data["spec"]["round"]}});
        api.patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    (&context.count).write_all(b".").expect("BENCH_COUNT can be written");
    Ok(Action::await_change())
}

fn on_error(_: Arc<DynamicObject>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets");
    let count = OpenOptions::new().create(true).append(true).open(std::env::var("BENCH_COUNT")?)?;
    let status = std::env::var("BENCH_STATUS").is_ok_and(|value| value == "1");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let concurrent = std::env::var("BENCH_CONCURRENT")?.parse()?;
    let context = Context { client, resource: resource.clone(), count, status, seen: Mutex::default() };
    Controller::new_with(api, watcher::Config::default(), resource)
        .with_config(Config::default().concurrency(concurrent))
        .run(reconcile, on_error, Arc::new(context))
        .for_each(|_| futures::future::ready(()))
        .await;
    Ok(())
}
