use reqwest::Url;

use crate::oci::{DialPolicy, Proxies, dial::Guard};

fn guard(policy: DialPolicy) -> Guard {
    Guard::new(&policy, &Proxies::default()).unwrap()
}

fn refuses(guard: &Guard, url: &str) -> bool {
    guard.url(&Url::parse(url).unwrap()).is_err()
}

#[test]
fn some_addresses_are_never_dialled() {
    let guard = guard(DialPolicy::default());
    for url in [
        "http://169.254.169.254/latest",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::1]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://metadata.google.internal/",
        "http://metadata.google.internal./",
    ] {
        assert!(refuses(&guard, url), "{url}");
    }
    for url in ["http://127.0.0.1/", "http://10.1.2.3/", "https://ghcr.io/", "http://[::1]/", "http://1.1.1.1/", "http://[2606:4700::1]/"] {
        assert!(!refuses(&guard, url), "{url}");
    }
}

#[test]
fn ranges_are_refused_and_listed() {
    let strict = |listed: &[&str]| {
        guard(DialPolicy { loopback: false, private: false, listed: listed.iter().map(ToString::to_string).collect(), refused: Vec::new() })
    };
    let none = strict(&[]);
    for url in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://10.1.2.3/",
        "http://172.31.0.1/",
        "http://192.168.0.1/",
        "http://100.64.0.1/",
        "http://[fd12::1]/",
    ] {
        assert!(refuses(&none, url), "{url}");
    }
    assert!(!refuses(&none, "http://172.32.0.1/"));
    let some = strict(&["10.1.0.0/16", "fd12::/16", "127.0.0.1", "169.254.1.1"]);
    for url in ["http://10.1.2.3/", "http://[fd12::1]/", "http://127.0.0.1/", "http://[::ffff:10.1.2.3]/", "http://169.254.1.1/"] {
        assert!(!refuses(&some, url), "{url}");
    }
    assert!(refuses(&some, "http://10.2.0.1/") && refuses(&some, "http://127.0.0.2/"));
    assert!(strict(&["registry.corp"]).address("registry.corp", "10.9.9.9".parse().unwrap()).is_ok());
    let refused = none.address("registry.corp", "10.9.9.9".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(refused, "registry.corp is at 10.9.9.9, a private address, which is not dialled; an operator can list it");
}

#[test]
fn lists_are_read_strictly() {
    for wrong in ["10.0.0.0/33", "10.0.0.0/x", "host/8", ""] {
        let policy = DialPolicy { listed: vec![wrong.into()], ..DialPolicy::default() };
        assert_eq!(Guard::new(&policy, &Proxies::default()).unwrap_err(), wrong);
    }
}

#[test]
fn what_is_refused_is_dialled_when_listed_only() {
    let with = |listed: &[&str]| {
        let listed = listed.iter().map(ToString::to_string).collect();
        guard(DialPolicy {
            refused: vec!["10.96.0.0/12".into(), "fd10::/16".into(), "203.0.113.7".into()],
            listed,
            ..DialPolicy::default()
        })
    };
    let none = with(&[]);
    for url in ["http://10.96.0.1/", "http://[::ffff:10.100.2.3]/", "http://[fd10::1]/", "http://203.0.113.7/"] {
        assert!(refuses(&none, url), "{url}");
    }
    assert!(!refuses(&none, "http://10.1.2.3/") && !refuses(&none, "http://203.0.113.8/"));
    let some = with(&["10.96.7.7", "registry.kube-system.svc"]);
    assert!(!refuses(&some, "http://10.96.7.7/") && refuses(&some, "http://10.96.7.8/"));
    assert!(some.address("registry.kube-system.svc", "10.96.7.8".parse().unwrap()).is_ok());
    let refused = none.address("evil.example.com", "10.96.0.1".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(refused, "evil.example.com is at 10.96.0.1, an address of the cluster's own, which is not dialled; an operator can list it");
    let policy = DialPolicy { refused: vec!["registry.corp".into()], ..DialPolicy::default() };
    assert_eq!(Guard::new(&policy, &Proxies::default()).unwrap_err(), "registry.corp");
}
