//! Who did it.

use serde_json::Value;

use super::{Attributes, OtlpOptions, Surroundings};

/// The name of those whose telemetry does not name them, as the specification of resources has it.
const UNKNOWN: &str = "unknown_service";

/// Attributes of a resource that tell the replicas of a service apart, where it has no `service.instance.id`: the narrowest first. The last two are
/// those of Jaeger's clients.
const REPLICA: [&str; 6] = ["k8s.pod.name", "k8s.pod.uid", "container.id", "host.name", "hostname", "ip"];

/// The actor that a span or log record with these attributes belongs to.
pub(super) fn actor(own: &Attributes, around: &Surroundings, options: &OtlpOptions) -> String {
    let nearest = |key: &str| {
        [own, &around.scope_attributes, &around.resource]
            .iter()
            .find_map(|place| place.get(key))
            .and_then(name)
    };
    let parts: Vec<String> = match &options.actor_by {
        Some(keys) => keys.iter().filter_map(|key| nearest(key)).collect(),
        None => {
            // A span may have the attributes of a machine that it asks for something, so only the resource says where it was.
            let of = |key: &str| around.resource.get(key).and_then(name);
            let service = nearest("service.name");
            // Services of two namespaces may have one name.
            let namespace = of("service.namespace").filter(|_| service.is_some());
            let instance = nearest("service.instance.id");
            let (replica, process) = match instance {
                Some(_) => (instance, None),
                // The first process of a container is the only one.
                None => (REPLICA.iter().find_map(|key| of(key)), of("process.pid").filter(|pid| pid != "1")),
            };
            namespace.into_iter().chain(service).chain(replica).chain(process).collect()
        }
    };
    if parts.is_empty() { UNKNOWN.to_owned() } else { parts.join("/") }
}

/// An attribute's value as a part of a name.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attributes(value: Value) -> Attributes {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_nearest_attribute_counts() {
        let around = Surroundings {
            resource: attributes(
                json!({"service.name": "shop", "service.instance.id": "i-1", "thread.id": 1}),
            ),
            scope: String::new(),
            scope_attributes: attributes(json!({"thread.id": 2})),
        };
        let options = OtlpOptions::default();
        assert_eq!(actor(&Attributes::new(), &around, &options), "shop/i-1");
        let by_thread =
            OtlpOptions { actor_by: Some(vec!["service.name".into(), "thread.id".into()]), ..options };
        assert_eq!(actor(&Attributes::new(), &around, &by_thread), "shop/2");
        assert_eq!(actor(&attributes(json!({"thread.id": 3})), &around, &by_thread), "shop/3");
    }

    #[test]
    fn replicas_of_a_service_are_several_actors() {
        let options = OtlpOptions::default();
        let of = |own: Value, resource: Value| {
            let around = Surroundings { resource: attributes(resource), ..Surroundings::default() };
            actor(&attributes(own), &around, &options)
        };
        let shop = |key: &str, value: &str| of(json!({}), json!({"service.name": "shop", key: value}));
        assert_eq!(shop("k8s.pod.name", "shop-7f9-x2"), "shop/shop-7f9-x2");
        assert_eq!(shop("container.id", "3f2a"), "shop/3f2a");
        assert_eq!(shop("host.name", "web-1"), "shop/web-1");
        assert_eq!(shop("hostname", "web-1"), "shop/web-1");
        assert_eq!(shop("ip", "10.0.0.7"), "shop/10.0.0.7");
        let both = json!({"service.name": "shop", "host.name": "web-1", "k8s.pod.name": "p"});
        assert_eq!(of(json!({}), both.clone()), "shop/p");
        assert_eq!(of(json!({"service.instance.id": "i"}), both), "shop/i");
        // Workers of one machine, and services of one name.
        let worker = |pid: u64| {
            of(json!({}), json!({"service.name": "shop", "host.name": "web-1", "process.pid": pid}))
        };
        assert_eq!((worker(41), worker(1)), ("shop/web-1/41".to_owned(), "shop/web-1".to_owned()));
        let named = json!({"service.namespace": "eu", "service.name": "shop", "service.instance.id": "i", "process.pid": 41});
        assert_eq!(of(json!({}), named), "eu/shop/i");
        // The machine that a span speaks of is not the one it runs on.
        let asks = json!({"host.name": "db-1", "hostname": "db-1", "ip": "10.0.0.9", "container.id": "c"});
        assert_eq!(of(asks, json!({"service.name": "shop"})), "shop");
    }

    #[test]
    fn nobody_has_a_name_too() {
        let around =
            Surroundings { resource: attributes(json!({"service.name": " "})), ..Surroundings::default() };
        assert_eq!(actor(&Attributes::new(), &around, &OtlpOptions::default()), "unknown_service");
    }
}
