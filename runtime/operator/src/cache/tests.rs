use k8s_openapi::{
    api::core::v1::Service,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::*;

fn service(name: &str, uid: &str, version: u64, owner: &str) -> Service {
    Service {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("n".into()),
            uid: Some(uid.into()),
            resource_version: Some(version.to_string()),
            owner_references: Some(vec![OwnerReference { uid: owner.into(), ..OwnerReference::default() }]),
            ..ObjectMeta::default()
        },
        ..Service::default()
    }
}

fn version(cache: &Cache<Service>, name: &str) -> Option<String> {
    cache.get(&Key::new("n", name)).and_then(|s| s.metadata.resource_version.clone())
}

#[test]
fn an_echo_of_our_own_write_is_no_news_and_an_overtaken_event_is() {
    let cache = Cache::default();
    cache.answered(service("a", "1", 12, "o"));
    assert!(cache.apply(service("a", "1", 12, "o")).is_none());
    assert!(cache.apply(service("a", "1", 11, "o")).is_some());
    assert_eq!(version(&cache, "a").as_deref(), Some("12"));
    assert!(cache.apply(service("a", "1", 100, "o")).is_some());
    cache.answered(service("a", "1", 13, "o"));
    assert_eq!(version(&cache, "a").as_deref(), Some("100"));
}

#[test]
fn owners_are_followed_when_they_change() {
    let cache = Cache::default();
    cache.apply(service("a", "1", 1, "o"));
    cache.apply(service("b", "2", 2, "o"));
    assert_eq!(cache.owned_by("o").len(), 2);
    cache.apply(service("a", "1", 3, "p"));
    assert_eq!((cache.owned_by("o").len(), cache.owned_by("p").len()), (1, 1));
    assert!(cache.delete(&service("b", "2", 4, "o").metadata).is_some());
    assert!(cache.owned_by("o").is_empty());
}

#[test]
fn the_end_of_an_old_object_does_not_take_the_new_one() {
    let cache = Cache::default();
    cache.answered(service("a", "new", 9, "o"));
    assert!(cache.delete(&service("a", "old", 8, "o").metadata).is_none());
    assert_eq!(version(&cache, "a").as_deref(), Some("9"));
}

#[test]
fn what_a_list_does_not_see_is_gone_unless_it_was_written_meanwhile() {
    let cache = Cache::default();
    cache.apply(service("old", "1", 1, "o"));
    cache.apply(service("kept", "2", 2, "o"));
    cache.list_begins("n");
    cache.listed("n", service("kept", "2", 2, "o"));
    cache.answered(service("written", "3", 7, "o"));
    let gone = cache.list_ends("n");
    assert_eq!(gone.iter().map(|c| c.key.name.as_str()).collect::<Vec<_>>(), ["old"]);
    assert_eq!(cache.len(), 2);
    cache.list_begins("other");
    assert!(cache.list_ends("other").is_empty());
}
