//! TD_COAP_LINK: discovery by /.well-known/core (RFC 6690).

use millpond_live::{Code, Response};

use crate::{Bed, resources::LINK_FORMAT};

async fn discover(bed: &Bed, query: &str) -> Response {
    let response = bed.client.get(bed.uri(&format!("/.well-known/core{query}"))).send().await.unwrap();
    assert_eq!((response.code(), response.content_format()), (Code::CONTENT, Some(LINK_FORMAT)));
    response
}

/// The targets of the links that a query leaves.
async fn targets(query: &str) -> Vec<String> {
    let bed = Bed::new().await;
    let response = discover(&bed, query).await;
    let links = response.text().unwrap();
    // No attribute of the test bed holds a comma.
    let target = |link: &str| link.split_once('<').unwrap().1.split_once('>').unwrap().0.to_owned();
    links.split(',').filter(|link| !link.is_empty()).map(target).collect()
}

#[tokio::test]
async fn td_coap_link_01_well_known_interface() {
    let targets = targets("").await;
    for path in ["/test", "/large", "/obs", "/link1", "/seg1/seg2/seg3"] {
        assert!(targets.iter().any(|target| target == path), "{path} is missing in {targets:?}");
    }
}

#[tokio::test]
async fn td_coap_link_02_filter_by_resource_type() {
    assert_eq!(targets("?rt=Type1").await, ["/link1", "/link3"]);
}

#[tokio::test]
async fn td_coap_link_03_filter_by_an_empty_prefix() {
    assert_eq!(targets("?rt=*").await, ["/link1", "/link2", "/link3", "/link4"]);
}

#[tokio::test]
async fn td_coap_link_04_filter_with_several_resource_types() {
    assert_eq!(targets("?rt=Type2").await, ["/link1", "/link2"]);
}

#[tokio::test]
async fn td_coap_link_05_filter_by_the_prefix_of_an_interface() {
    assert_eq!(targets("?if=If*").await, ["/link1", "/link2"]);
}

#[tokio::test]
async fn td_coap_link_06_filter_by_size() {
    assert_eq!(targets("?sz=*").await, ["/link3"]);
}

#[tokio::test]
async fn td_coap_link_07_filter_by_target() {
    assert_eq!(targets("?href=/link1").await, ["/link1"]);
}

#[tokio::test]
async fn td_coap_link_08_filter_by_the_prefix_of_a_target() {
    assert_eq!(targets("?href=/link*").await, ["/link1", "/link2", "/link3", "/link4"]);
}

#[tokio::test]
async fn td_coap_link_09_links_in_a_hierarchy() {
    let bed = Bed::new().await;
    let core = discover(&bed, "").await;
    assert!(core.text().unwrap().split(',').any(|link| link.starts_with("</path>") && link.contains("ct=40")));
    let path = bed.client.get(bed.uri("/path")).send().await.unwrap();
    assert_eq!(path.content_format(), Some(LINK_FORMAT));
    assert!(path.text().unwrap().contains("</path/sub1>"));
    let sub = bed.client.get(bed.uri("/path/sub1")).send().await.unwrap();
    assert_eq!((sub.code(), sub.text().unwrap()), (Code::CONTENT, "/path/sub1"));
}
