use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use weir_core::policy::{Context, EnvVar, ObjectMeta, konnect_env};

use super::*;

type Answer = Result<konnect_env::Answer, PolicyError>;

struct Scripted {
    identity: Identity,
    asked: AtomicUsize,
    /// None never ends.
    says: Option<fn(&konnect_env::Input) -> Answer>,
}

impl Scripted {
    fn new(says: Option<fn(&konnect_env::Input) -> Answer>) -> Arc<Self> {
        let identity = Identity { source: "test".into(), digest: "d".into(), settings_digest: "s".into() };
        Arc::new(Self { identity, asked: AtomicUsize::new(0), says })
    }
}

impl Policy<KonnectEnv> for Scripted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a konnect_env::Input) -> BoxFuture<'a, Answer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.says {
            Some(says) => Box::pin(std::future::ready(says(input))),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn answer(value: &str) -> Answer {
    let env = vec![EnvVar { name: "KONG_EXTRA".into(), value: value.into() }];
    Ok(konnect_env::Answer { env, volumes: vec![], mounts: vec![], readiness_path: None, findings: vec![] })
}

fn input(name: &str) -> konnect_env::Input {
    let object = ObjectMeta { kind: "DataPlane".into(), namespace: "ns".into(), name: name.into(), ..ObjectMeta::default() };
    konnect_env::Input {
        context: Context { object, ..Context::default() },
        control_plane_id: "id".into(),
        cluster_type: konnect_env::ClusterType::ControlPlane,
        endpoints: konnect_env::Endpoints { control_plane: "c".into(), telemetry: "t".into() },
        region: None,
        certificate: konnect_env::Certificate { secret_name: "s".into(), mount_path: "/m".into() },
        data_plane_labels: Default::default(),
        image: "kong".into(),
    }
}

struct Bench {
    shadow: Arc<Shadow>,
    policy: Shadowed<KonnectEnv>,
    told: UnboundedReceiver<Key>,
}

fn bench(shadow: &Arc<Scripted>) -> Bench {
    let (sender, told) = unbounded_channel();
    let beside = Beside::new(sender, Shadows::default());
    let asked: Arc<dyn Policy<KonnectEnv>> = shadow.clone();
    let shadow = Arc::new(Shadow::begin::<KonnectEnv>(asked, Key::new("weir-system", "beside"), &beside));
    let policy = Shadowed::new(Scripted::new(Some(|_| answer("in force"))), vec![Arc::clone(&shadow)]);
    Bench { shadow, policy, told }
}

async fn counted(bench: &Bench, evaluated: i64) -> Compared {
    for _ in 0..1_000 {
        let compared = bench.shadow.compared();
        if compared.counts.evaluated >= evaluated {
            return compared;
        }
        tokio::task::yield_now().await;
    }
    panic!("the shadow was not asked {evaluated} times: {:?}", bench.shadow.compared());
}

#[tokio::test]
async fn what_differs_is_told_by_its_field_and_the_answer_is_the_one_in_force() {
    let shadow = Scripted::new(Some(|input| match input.context.object.name.as_str() {
        "same" => answer("in force"),
        "trap" => Err(PolicyError::Trap("s3cret".into())),
        _ => answer("s3cret"),
    }));
    let mut bench = bench(&shadow);
    for name in ["same", "other", "other", "another", "trap"] {
        assert_eq!(bench.policy.evaluate(&input(name)).await, answer("in force"));
        // As passes do.
        tokio::task::yield_now().await;
    }
    let compared = counted(&bench, 4).await;
    let counts = &compared.counts;
    assert_eq!((counts.evaluated, counts.differing, counts.failed, counts.dropped), (4, 2, 1, 0), "equal questions are asked once");
    let sample = compared.sample.unwrap();
    assert_eq!((sample.object.as_str(), sample.difference.to_string().as_str()), ("DataPlane ns/trap", "it gives no answer (Trap)"));
    assert_eq!(bench.told.recv().await, Some(Key::new("weir-system", "beside")));
    assert!(bench.told.try_recv().is_err(), "it is told once in ten seconds");
}

#[tokio::test]
async fn the_first_of_equal_differences_stays() {
    let shadow = Scripted::new(Some(|_| answer("other")));
    let bench = bench(&shadow);
    for name in ["a", "b"] {
        let _ = bench.policy.evaluate(&input(name)).await;
    }
    let sample = counted(&bench, 2).await.sample.unwrap();
    assert_eq!(format!("{}: {}", sample.object, sample.difference), "DataPlane ns/a: it says something else about env[KONG_EXTRA].value");
}

#[tokio::test]
async fn a_shadow_that_never_ends_delays_nobody_and_the_rest_is_left_out() {
    let shadow = Scripted::new(None);
    let bench = bench(&shadow);
    let all = QUEUE + 10;
    for index in 0..all {
        let question = input(&index.to_string());
        let asked = tokio::time::timeout(Duration::from_secs(5), bench.policy.evaluate(&question));
        assert_eq!(asked.await.unwrap(), answer("in force"));
    }
    let compared = bench.shadow.compared();
    assert_eq!((compared.counts.evaluated, compared.sample), (0, None));
    assert!(compared.counts.dropped >= 9, "{:?}", compared.counts);
    assert!(shadow.asked.load(Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn a_host_that_is_busy_says_nothing_about_the_policy() {
    let shadow = Scripted::new(Some(|_| Err(PolicyError::Unavailable("too many calls wait".into()))));
    let bench = bench(&shadow);
    for _ in 0..2 {
        let _ = bench.policy.evaluate(&input("a")).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    let compared = bench.shadow.compared();
    assert_eq!((compared.counts.evaluated, compared.counts.failed, compared.counts.dropped), (0, 0, 2));
    assert_eq!((compared.sample, shadow.asked.load(Ordering::SeqCst)), (None, 2), "it is asked again");
}
