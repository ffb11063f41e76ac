use millpond_coap::oscore::{OptionFault, OscoreOption, PartialIv};

/// RFC 8613 §6.3: the five examples.
#[test]
fn examples_of_compression() {
    let of = |partial_iv: Option<u64>, kid_context, kid| OscoreOption {
        partial_iv: partial_iv.and_then(PartialIv::new),
        kid_context,
        kid,
    };
    for (value, option) in [
        (&[0x09, 0x05, 0x25][..], of(Some(5), None, Some(&[0x25][..]))),
        (&[0x09, 0x00], of(Some(0), None, Some(&[]))),
        (&[0x19, 0x05, 0x05, 0x44, 0x61, 0x6c, 0x65, 0x6b], of(Some(5), Some(&b"Dalek"[..]), Some(&[]))),
        (&[], of(None, None, None)),
        (&[0x01, 0x07], of(Some(7), None, None)),
    ] {
        assert_eq!(OscoreOption::decode(value), Ok(option));
        assert_eq!(option.encode().unwrap(), value);
    }
}

/// A kid ends with the option, so what is cut within it is another kid.
#[test]
fn every_length_that_cuts_a_field_is_an_error() {
    let value = [0b1_1101, 1, 2, 3, 4, 5, 3, b'a', b'b', b'c', 7, 8];
    let kid_begins = value.len() - 2;
    for length in 0..value.len() {
        let read = OscoreOption::decode(&value[..length]);
        let expected = match length {
            0 => Ok(OscoreOption::default()),
            1..=5 => Err(OptionFault::PartialIvTruncated),
            6..=9 => Err(OptionFault::KidContextTruncated),
            _ => {
                let kid = Some(&value[kid_begins..length]);
                Ok(OscoreOption { partial_iv: PartialIv::new(0x01_0203_0405), kid_context: Some(b"abc"), kid })
            }
        };
        assert_eq!(read, expected, "{length}");
    }
    assert_eq!(OscoreOption::decode(&[0b0_0001]), Err(OptionFault::PartialIvTruncated));
    assert_eq!(OscoreOption::decode(&[0b1_0000]), Err(OptionFault::KidContextTruncated));
    assert_eq!(OscoreOption::decode(&[0b1_0000, 1]), Err(OptionFault::KidContextTruncated));
}

#[test]
fn what_nobody_may_write_is_an_error() {
    for (value, fault) in [
        (&[0x00][..], OptionFault::NotMinimal),
        (&[0x02, 0x00, 0x01], OptionFault::NotMinimal),
        (&[0x01, 0x07, 0x00], OptionFault::Trailing),
        (&[0x10, 0x00, 0x00], OptionFault::Trailing),
        (&[0x06, 1, 2, 3, 4, 5, 6], OptionFault::ReservedLength(6)),
        (&[0x07, 1, 2, 3, 4, 5, 6, 7], OptionFault::ReservedLength(7)),
        // Group OSCORE, and the flags after it.
        (&[0x29, 0x00], OptionFault::ReservedFlags),
        (&[0x49, 0x00], OptionFault::ReservedFlags),
        (&[0x89, 0x00], OptionFault::ReservedFlags),
        (&[0x08; 256], OptionFault::TooLong),
    ] {
        assert_eq!(OscoreOption::decode(value), Err(fault), "{value:02x?}");
    }
}

#[test]
fn of_all_values_of_up_to_three_bytes_those_that_are_read_are_written_the_same() {
    let mut read = 0;
    for length in 0..=3_u32 {
        for value in 0..1_u32 << (8 * length) {
            let value = &value.to_le_bytes()[..length as usize];
            if let Ok(option) = OscoreOption::decode(value) {
                assert_eq!(option.encode().unwrap(), value);
                read += 1;
            }
        }
    }
    assert!(read > 65_536);
}

#[test]
fn what_does_not_fit_is_not_written() {
    let of = |kid_context, kid| OscoreOption { partial_iv: None, kid_context: Some(kid_context), kid: Some(kid) };
    assert_eq!(of(&[1; 250], &[2; 3]).encode().unwrap().len(), 255);
    assert_eq!(of(&[1; 250], &[2; 4]).encode(), None);
    assert_eq!(of(&[1; 300], &[]).encode(), None);
}
