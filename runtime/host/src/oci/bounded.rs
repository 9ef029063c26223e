//! Lists and maps of strangers' JSON, cut off by an error before they take more memory than they deserve.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};

/// More entries than any list of layers or manifests; [`super::Limits`] are below.
pub(super) const MAX_ITEMS: usize = 256;
/// More annotations than any artifact has.
const MAX_ANNOTATIONS: usize = 256;

/// For `deserialize_with`: a list, or null.
pub(super) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Option<Vec<T>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX_ITEMS} entries")
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = from.next_element()? {
                if items.len() == MAX_ITEMS {
                    return Err(A::Error::invalid_length(MAX_ITEMS + 1, &self));
                }
                items.push(item);
            }
            Ok(Some(items))
        }
    }
    from.deserialize_any(List(PhantomData))
}

/// For `deserialize_with`: annotations, or null.
pub(super) fn annotations<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    struct Annotations;

    impl<'de> Visitor<'de> for Annotations {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX_ANNOTATIONS} annotations")
        }

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = from.next_entry()? {
                if map.len() == MAX_ANNOTATIONS {
                    return Err(A::Error::invalid_length(MAX_ANNOTATIONS + 1, &self));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }
    from.deserialize_any(Annotations)
}
