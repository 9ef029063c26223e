//! The calls of CNPG-I on a lease. Objects are JSON with `apiVersion` and `kind`; patches are RFC 6902 and still to be judged.

use std::time::Duration;

use weir_proto::{
    lifecycle::{self as lc, operator_lifecycle_client::OperatorLifecycleClient, operator_operation_type::Type},
    operator::{self as op, operator_client::OperatorClient},
    reconciler::{self as rc, reconciler_hooks_client::ReconcilerHooksClient, reconciler_hooks_result::Behavior as Wire},
};

use crate::remote::{CallError, Class, Lease, text, wire::origin};

/// Most errors of one validation.
const MAX_ERRORS: usize = 64;
/// Deepest path of one.
const MAX_PATH: usize = 32;

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// It is patched.
    Patch,
    /// It is replaced.
    Update,
    /// It is made.
    Create,
    /// It is deleted.
    Delete,
    /// It would be made or changed; asked to see what that would be.
    Evaluate,
}

impl Verb {
    /// All, in the order of the wire.
    pub const ALL: [Self; 5] = [Self::Patch, Self::Update, Self::Create, Self::Delete, Self::Evaluate];

    /// Upper case, as in CNPG-I.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "PATCH",
            Self::Update => "UPDATE",
            Self::Create => "CREATE",
            Self::Delete => "DELETE",
            Self::Evaluate => "EVALUATE",
        }
    }

    fn wire(self) -> Type {
        match self {
            Self::Patch => Type::Patch,
            Self::Update => Type::Update,
            Self::Create => Type::Create,
            Self::Delete => Type::Delete,
            Self::Evaluate => Type::Evaluate,
        }
    }

    /// None for a number that is not one of ours.
    pub(in crate::remote) fn read(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| i32::from(verb.wire()) == number)
    }
}

/// Before or after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Before.
    Pre,
    /// After.
    Post,
}

/// How a plugin wants a pass to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Behavior {
    /// With the next plugin.
    Continue,
    /// Not now; again after this long, or when the operator thinks fit.
    Requeue(Option<Duration>),
    /// Not at all, and that is fine.
    Terminate,
}

/// What a plugin says about an object that it does not want.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValidationError {
    /// Field, joined with dots.
    pub path: String,
    /// What stands there.
    pub value: String,
    /// What is wrong.
    pub message: String,
}

macro_rules! client {
    ($lease:expr, $client:ident) => {
        $client::with_origin($lease.wire(), origin())
            .max_decoding_message_size($lease.limits().message)
            .max_encoding_message_size($lease.limits().message)
    };
}

impl Lease {
    /// The lifecycle hook: a patch for `object`, empty when it stays as it is. Only for what [`Capabilities::wants`](crate::remote::Capabilities::wants).
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn lifecycle(&self, verb: Verb, cluster: Vec<u8>, object: Vec<u8>, within: Duration) -> Result<Vec<u8>, CallError> {
        let mut client = client!(self, OperatorLifecycleClient);
        let question = lc::OperatorLifecycleRequest {
            operation_type: Some(lc::OperatorOperationType { r#type: verb.wire().into() }),
            cluster_definition: cluster,
            object_definition: object,
        };
        let within = within.min(self.deadlines().hook);
        let send = |request| async move { client.lifecycle_hook(request).await };
        Ok(self.call("OperatorLifecycle/LifecycleHook", within, question, send).await?.json_patch)
    }

    /// The reconciler's hook before or after a pass over `resource`.
    ///
    /// # Errors
    /// [`CallError`]; `Garbage` for a behaviour that nobody knows.
    pub async fn reconcile(&self, stage: Stage, cluster: Vec<u8>, resource: Vec<u8>, within: Duration) -> Result<Behavior, CallError> {
        let mut client = client!(self, ReconcilerHooksClient);
        let question = rc::ReconcilerHooksRequest { cluster_definition: cluster, resource_definition: resource };
        let within = within.min(self.deadlines().hook);
        let (method, answer) = match stage {
            Stage::Pre => {
                let send = |request| async move { client.pre(request).await };
                ("ReconcilerHooks/Pre", self.call("ReconcilerHooks/Pre", within, question, send).await?)
            }
            Stage::Post => {
                let send = |request| async move { client.post(request).await };
                ("ReconcilerHooks/Post", self.call("ReconcilerHooks/Post", within, question, send).await?)
            }
        };
        match Wire::try_from(answer.behavior) {
            Ok(Wire::Unspecified | Wire::Continue) => Ok(Behavior::Continue),
            Ok(Wire::Terminate) => Ok(Behavior::Terminate),
            Ok(Wire::Requeue) => {
                // Zero and less leave it to the operator; a day is the longest that anybody means.
                let after = u64::try_from(answer.requeue_after).ok().filter(|seconds| *seconds > 0);
                Ok(Behavior::Requeue(after.map(|seconds| Duration::from_secs(seconds.min(86_400)))))
            }
            Err(_) => Err(CallError {
                method,
                class: Class::Garbage,
                message: format!("behaviour {} is not known to this host", answer.behavior),
            }),
        }
    }

    /// What the plugin reports into the object's status: a JSON object; none leaves it as it is.
    ///
    /// # Errors
    /// [`CallError`]; `Garbage` for what is no JSON object.
    pub async fn set_status(
        &self,
        cluster: Vec<u8>,
        within: Duration,
    ) -> Result<Option<serde_json::Map<String, serde_json::Value>>, CallError> {
        const METHOD: &str = "Operator/SetStatusInCluster";
        let mut client = client!(self, OperatorClient);
        let within = within.min(self.deadlines().operator);
        let send = |request| async move { client.set_status_in_cluster(request).await };
        let answer = self.call(METHOD, within, op::SetStatusInClusterRequest { cluster }, send).await?;
        if answer.json_status.is_empty() {
            return Ok(None);
        }
        let garbage = |_| CallError { method: METHOD, class: Class::Garbage, message: "the status is no JSON object".into() };
        serde_json::from_slice(&answer.json_status).map(Some).map_err(garbage)
    }

    /// A patch for the object before it is stored, empty when it stays as it is.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn mutate(&self, definition: Vec<u8>, within: Duration) -> Result<Vec<u8>, CallError> {
        let mut client = client!(self, OperatorClient);
        let within = within.min(self.deadlines().operator);
        let send = |request| async move { client.mutate_cluster(request).await };
        Ok(self.call("Operator/MutateCluster", within, op::OperatorMutateClusterRequest { definition }, send).await?.json_patch)
    }

    /// What is wrong with a new object, or with the change of `old`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn validate(&self, old: Option<Vec<u8>>, new: Vec<u8>, within: Duration) -> Result<Vec<ValidationError>, CallError> {
        let mut client = client!(self, OperatorClient);
        let within = within.min(self.deadlines().operator);
        let errors = match old {
            None => {
                let question = op::OperatorValidateClusterCreateRequest { definition: new };
                let send = |request| async move { client.validate_cluster_create(request).await };
                self.call("Operator/ValidateClusterCreate", within, question, send).await?.validation_errors
            }
            Some(old_cluster) => {
                let question = op::OperatorValidateClusterChangeRequest { old_cluster, new_cluster: new };
                let send = |request| async move { client.validate_cluster_change(request).await };
                self.call("Operator/ValidateClusterChange", within, question, send).await?.validation_errors
            }
        };
        // Those beyond the bound change nothing: the object is refused by the first one.
        Ok(errors.into_iter().take(MAX_ERRORS).map(validation_error).collect())
    }

    /// Says farewell to an object.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn deregister(&self, definition: Vec<u8>, within: Duration) -> Result<(), CallError> {
        let mut client = client!(self, OperatorClient);
        let within = within.min(self.deadlines().operator);
        let send = |request| async move { client.deregister(request).await };
        self.call("Operator/Deregister", within, op::DeregisterRequest { definition }, send).await.map(|_| ())
    }
}

fn validation_error(error: op::ValidationError) -> ValidationError {
    let path = error.path_components.iter().take(MAX_PATH).map(String::as_str).collect::<Vec<_>>().join(".");
    ValidationError { path: text::line(&path, 500), value: text::line(&error.value, 80), message: text::message(&error.message) }
}
