// SPDX-License-Identifier: Apache-2.0
//! The handler of examples/website with the kit: a page in a ConfigMap, a Deployment that serves it, a Service in front.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use reconciled::{info, json, Answer, Error, Handler, Request, Value};

fn children(name: &str, page: &str, replicas: i64) -> Vec<Value> {
    let labels = json!({ "website": name });
    // The page's hash among the annotations: another page is another pod.
    let mut hasher = DefaultHasher::new();
    page.hash(&mut hasher);
    let hash = format!("{:016x}", hasher.finish());
    let container = json!({"name": "web", "image": "nginx:stable", "ports": [{"containerPort": 80}],
                           "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}]});
    let template = json!({"metadata": {"labels": (&labels), "annotations": {"page": hash}},
                          "spec": {"volumes": [{"name": "page", "configMap": {"name": name}}], "containers": [container]}});
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"index.html": page}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
               "spec": {"replicas": replicas, "selector": {"matchLabels": (&labels)}, "template": template}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
               "spec": {"selector": labels, "ports": [{"port": 80, "protocol": "TCP"}]}}),
    ]
}

fn names(request: &Request) -> (&str, &str) {
    let metadata = request.object.get("metadata");
    (metadata.get("name").as_str().unwrap_or_default(), metadata.get("namespace").as_str().unwrap_or_default())
}

fn reconcile(request: &Request) -> Result<Answer, Error> {
    let (name, namespace) = names(request);
    let spec = request.object.get("spec");
    let page = spec.get("html").as_str().ok_or_else(|| Error::permanent("the web site lacks spec.html"))?;
    let replicas = spec.get("replicas");
    let replicas = if replicas.is_null() { 1 } else { replicas.integer("spec.replicas")? };
    info!("web site {}/{}", namespace, name);
    Ok(Answer {
        children: Some(children(name, page, replicas)),
        status: Some(json!({"address": (format!("http://{}.{}", name, namespace))})),
        ..Answer::default()
    })
}

fn finalize(request: &Request) -> Result<Answer, Error> {
    info!("web site {} goes, and its children with it", names(request).0);
    Ok(Answer::default())
}

fn main() {
    Handler::new(reconcile).finalize(finalize).serve();
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconciled::testing::{answer, request, run};

    #[test]
    fn children_and_address() {
        let object = json!({"metadata": {"name": "hello"}, "spec": {"html": "<h1>Hello</h1>", "replicas": 2}});
        let answer = run(reconcile, object);
        assert_eq!(answer.get("status"), &json!({"address": "http://hello.default"}));
        let children = answer.get("children").as_list();
        assert_eq!(children.len(), 3);
        assert_eq!(children[1].get("spec").get("replicas").as_i64(), Some(2));
    }

    #[test]
    fn without_a_page() {
        assert_eq!(run(reconcile, json!({})), json!({"error": "the web site lacks spec.html", "permanent": true}));
    }

    #[test]
    fn its_end() {
        let request = Request { action: "finalize".to_string(), ..request(json!({})) };
        assert_eq!(answer(finalize, &request), json!({}));
    }
}
