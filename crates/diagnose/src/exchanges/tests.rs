use super::*;

/// A device that asks, at a time in microseconds, with a message ID.
fn asked(gathering: &mut Gathering, time: i64, id: u16) {
    let ends = (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 5683).into());
    let (kind, sort, id) = (Kind::Confirmable, Sort::Request, MessageId(id));
    gathering.take(time, 40, ends, &Message { kind, sort, id, token: Token::EMPTY, payload: 0, observes: false });
}

#[test]
fn a_chapter_ends_where_the_clock_stands_still() {
    let mut gathering = Gathering::default();
    for id in 0..4 {
        asked(&mut gathering, 7, id);
    }
    let cut = gathering.cut();
    let chapter = gathering.turn(cut);
    assert!(chapter.exchanges.iter().all(|exchange| is_settled(exchange, cut)));
    assert_eq!((chapter.packets.len(), gathering.chapter.packets.len()), (4, 0));
}

/// When a device that asks at once, and perhaps again, is answered: by responses at a time, of a kind, with a message ID.
fn answered(mut again: Option<i64>, observes: bool, by: &[(i64, Kind, u16)]) -> (Vec<f64>, bool) {
    let mut gathering = Gathering::default();
    asked(&mut gathering, 0, 1);
    let ends = (([192, 0, 2, 2], 5683).into(), ([192, 0, 2, 1], 40_000).into());
    for &(time, kind, id) in by {
        if let Some(again) = again.take_if(|again| *again < time) {
            asked(&mut gathering, again, 1);
        }
        let (sort, observes) = (Sort::Response, observes && kind != Kind::Acknowledgement);
        let answer = Message { kind, sort, id: MessageId(id), token: Token::EMPTY, payload: 1, observes };
        gathering.take(time, 50, ends, &answer);
    }
    let [exchange] = &gathering.chapter.exchanges[..] else { panic!("{:?}", gathering.chapter.exchanges) };
    (exchange.answered.to_vec(), exchange.separate)
}

#[test]
fn a_notification_is_no_answer_to_the_request_that_ends_it() {
    let by = [(1_000_000, Kind::NonConfirmable, 500), (5_000_000, Kind::Acknowledgement, 1)];
    for again in [None, Some(3_000_000)] {
        assert_eq!(answered(again, true, &by), (vec![5.0], false));
    }
    // A response that is no notification comes by itself, and the acknowledgement is to the duplicate.
    assert_eq!(answered(Some(3_000_000), false, &by), (vec![1.0, 5.0], true));
    // One transmission is answered once.
    assert_eq!(answered(None, false, &by), (vec![5.0], false));
}

#[test]
fn nothing_follows_of_more_exchanges_than_there_are() {
    let mut gathering = Gathering::default();
    for id in 0..3 {
        asked(&mut gathering, 1_000_000 * i64::from(id), id);
    }
    let followed = |chapter: &mut Chapter, open| {
        chapter.follow(open);
        chapter.exchanges.iter().map(|exchange| exchange.next).collect::<Vec<_>>()
    };
    let chapter = &mut gathering.chapter;
    assert_eq!(followed(chapter, 2), [Some(2.0), None, None]);
    assert_eq!(followed(chapter, usize::MAX), [None; 3]);
}

#[test]
fn an_exchange_has_no_more_copies_than_are_kept() {
    let mut gathering = Gathering::default();
    for number in 0..2 * MOST_COPIES as i64 {
        asked(&mut gathering, 2000 * number, 1);
    }
    let sent: Vec<usize> = gathering.chapter.exchanges.iter().map(|exchange| exchange.sent.len()).collect();
    assert_eq!(sent, [MOST_COPIES, MOST_COPIES]);
}
