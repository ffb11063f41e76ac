use alloc::string::ToString;

use millpond_control::Span;

use crate::block::robust::BurstParameters;

#[test]
fn what_cannot_work_is_refused_with_its_place_and_its_fix() {
    assert_eq!(BurstParameters::RFC9177.check(), Ok(()));
    type Change = fn(&mut BurstParameters);
    let cases: [(Change, &str); 3] = [
        (|p| p.set = 0, "set is 0"),
        (|p| p.patience = Span::from_millis(3_999), "patience is 3.999 s; use 4 s or more"),
        (|p| p.pause = Span::from_secs(3), "use 5.5 s or more"),
    ];
    for (change, expected) in cases {
        let mut parameters = BurstParameters::RFC9177;
        change(&mut parameters);
        let message = parameters.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{message:?} lacks {expected:?}");
    }
}
