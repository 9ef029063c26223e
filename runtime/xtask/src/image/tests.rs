use super::sbom;

#[test]
fn the_list_of_contents_has_what_is_compiled_in_and_nothing_else() {
    let metadata = serde_json::json!({
        "packages": [
            {"id": "cli", "name": "weir-cli", "version": "0.1.0", "license": "Apache-2.0", "source": null, "repository": null},
            {"id": "a", "name": "a_b", "version": "1.0.0", "license": "MIT/Apache-2.0", "source": "registry", "repository": "https://example.com/a"},
            {"id": "test", "name": "only-for-tests", "version": "1.0.0", "license": null, "source": "registry", "repository": null}
        ],
        "resolve": {"nodes": [
            {"id": "cli", "deps": [{"pkg": "a", "dep_kinds": [{"kind": null}]}, {"pkg": "test", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "a", "deps": []},
            {"id": "test", "deps": []}
        ]}
    });
    let metadata: sbom::Metadata = serde_json::from_value(metadata).unwrap();
    let debian = [weir_image::Package { name: "libc6:amd64".into(), version: "2.36-9+deb12u1".into() }];
    let document = sbom::spdx(&metadata, "ab", &debian, "1970-01-01T00:00:00Z").unwrap();
    let names: Vec<_> = document["packages"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a_b", "weir-cli", "libc6"]);
    assert_eq!(document["packages"][0]["licenseDeclared"], "MIT OR Apache-2.0");
    assert_eq!(document["packages"][2]["externalRefs"][0]["referenceLocator"], "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1");
    assert_eq!(document["relationships"].as_array().unwrap().len(), 3);
}
