use millpond_control::Span;

use super::*;

const WAIT: Span = Span::from_secs(2);

fn tag(exchange: u32, copy: u8, sent: u64) -> Tag {
    Tag { exchange, copy, ..Tag::of(0, 38, at(sent)) }
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn ledger(exchanges: &[u64]) -> Ledger {
    Ledger::new(exchanges.iter().map(|&count| (0, Some(count))), 1, true, Instant::ORIGIN)
}

/// A request with one exchange of which the first copy left.
fn begin(ledger: &mut Ledger, exchange: u32, first_batch: bool) -> u32 {
    let request = ledger.arrival(0, 0, 0, Instant::ORIGIN);
    ledger.begin(0, exchange, request, None, first_batch);
    request
}

fn row(ledger: &mut Ledger) -> FlowRow {
    let mut row = FlowRow::default();
    ledger.sum(&mut row);
    row
}

#[test]
fn a_retransmission_is_unnecessary_if_an_earlier_copy_was_answered_after_all() {
    for is_late in [false, true] {
        let mut ledger = ledger(&[3]);
        begin(&mut ledger, 0, true);
        for copy in 0..4 {
            ledger.sent(&tag(0, copy, 100 + u64::from(copy)), WAIT);
        }
        // The response to copy 1 wins; the one to copy 0 comes late and shows that all three were unnecessary.
        ledger.reached(&tag(0, 1, 101));
        ledger.accepted(&tag(0, 1, 101), at(900));
        if is_late {
            ledger.reached(&tag(0, 0, 100));
        }
        assert_eq!(ledger.records.living(), 1, "two copies are still under way");
        ledger.close();
        let row = row(&mut ledger);
        assert_eq!((row.transmissions, row.retransmissions, row.completed), (4, 3, 1));
        assert_eq!(row.unnecessary, if is_late { 3 } else { 2 });
        assert_eq!(row.rtt_first_mean_us, Some(800.0));
        assert_eq!(row.rtt_strong_mean_us, None);
    }
}

#[test]
fn a_record_lives_until_nothing_of_it_is_under_way() {
    let mut ledger = ledger(&[2]);
    let request = begin(&mut ledger, 0, true);
    for copy in 0..3 {
        ledger.sent(&tag(0, copy, 100), WAIT);
    }
    ledger.reached(&tag(0, 2, 100));
    assert_eq!(ledger.accepted(&tag(0, 2, 100), at(900)), Some(request));
    assert_eq!(ledger.ended(request, true, at(900), &[Instant::ORIGIN]), 0);
    // One copy makes the server send two packets; one of them is lost, and so is the other copy.
    ledger.branched(&tag(0, 0, 100), 1);
    ledger.gone(&tag(0, 1, 100));
    ledger.gone(&tag(0, 0, 100));
    assert_eq!((ledger.records.living(), ledger.requests.living()), (1, 1));
    ledger.reached(&tag(0, 0, 100));
    assert_eq!((ledger.records.living(), ledger.requests.living()), (0, 0));
    assert_eq!(row(&mut ledger).unnecessary, 2);
    // Whatever comes for it now finds nothing.
    ledger.reached(&tag(0, 1, 100));
    ledger.gone(&tag(0, 1, 100));
    assert_eq!(ledger.accepted(&tag(0, 1, 100), at(901)), None);
}

#[test]
fn every_request_ends_in_one_way() {
    let mut ledger = ledger(&[9]);
    let since = [Instant::ORIGIN];
    let answered = begin(&mut ledger, 0, true);
    let (failed, open) = (begin(&mut ledger, 1, true), begin(&mut ledger, 2, true));
    let refused = ledger.arrival(0, 0, 0, Instant::ORIGIN);
    for exchange in 0..3 {
        ledger.sent(&tag(exchange, 0, 1), WAIT);
        ledger.delivered(&tag(exchange, 0, 1), at(5));
        // A retransmission of it comes to the application again.
        ledger.delivered(&tag(exchange, 0, 1), at(6));
    }
    ledger.reached(&tag(0, 0, 1));
    ledger.accepted(&tag(0, 0, 1), at(10));
    ledger.ended(answered, true, at(10), &since);
    assert_eq!(ledger.abandoned(0, 1), Some(failed));
    ledger.ended(failed, false, at(20), &since);
    ledger.refused(refused, at(0));
    assert_ne!(open, refused);
    ledger.close();
    let row = row(&mut ledger);
    assert_eq!((row.arrivals, row.answered, row.requests_failed, row.never_finished), (4, 1, 2, 1));
    assert_eq!((row.delivered, row.dropped_source, row.completed, row.exchanges_failed), (3, 1, 1, 1));
    // A bin ends up to 1/64 above the two seconds that are in it.
    let delays: Vec<_> = ledger.delays().iter().map(|row| (row.kind, row.upper_us, row.count)).collect();
    assert_eq!(
        delays,
        [
            ("one_way", 5, 3),
            ("crossing", 4, 3),
            ("answer", 10, 1),
            ("wait", 1, 3),
            ("rtt", 9, 1),
            ("first_wait", 2_015_231, 3)
        ]
    );
    let reported = ledger.reported([1].into_iter());
    assert_eq!(reported.len(), 1);
    assert_eq!((reported[0].t_us, reported[0].answered, reported[0].of, reported[0].clients_of), (10, 1, 4, 1));
}

#[test]
fn what_is_born_in_the_warm_up_does_not_count() {
    let mut ledger = Ledger::new([(0, Some(9))].into_iter(), 1, true, at(100));
    for (exchange, time) in [(0, 99), (1, 100)] {
        let request = ledger.arrival(0, 0, 0, at(time));
        ledger.begin(0, exchange, request, None, true);
        ledger.sent(&tag(exchange, 0, time), WAIT);
        ledger.delivered(&tag(exchange, 0, time), at(time + 5));
        ledger.reached(&tag(exchange, 0, time));
        ledger.accepted(&tag(exchange, 0, time), at(time + 10));
        ledger.ended(request, true, at(time + 10), &[Instant::ORIGIN]);
    }
    let row = row(&mut ledger);
    assert_eq!((row.arrivals, row.answered, row.delivered, row.completed, row.transmissions), (1, 1, 1, 1, 1));
    assert!(ledger.delays().iter().all(|row| row.count == 1));
    // A trace has all.
    assert_eq!(ledger.rows().len(), 2);
    assert_eq!(ledger.histogram().iter().map(|row| row.exchanges).sum::<u64>(), 1);
}

#[test]
fn the_histogram_counts_answered_exchanges_only() {
    let mut ledger = ledger(&[2, 2]);
    for (exchange, first_batch) in [(0, true), (1, false), (2, false)] {
        begin(&mut ledger, exchange, first_batch);
        ledger.sent(&tag(exchange, 0, 1), WAIT);
    }
    ledger.accepted(&tag(0, 0, 1), at(2));
    ledger.close();
    let rows = ledger.histogram();
    assert_eq!(rows, [HistogramRow { group: 0, first_batch: true, retransmissions: 0, exchanges: 1 }]);
    assert_eq!(ledger.rows().iter().map(|row| row.exchange).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn first_waits_count_once_an_exchange() {
    let mut ledger = ledger(&[4, 4]);
    for (exchange, wait) in [(0, 40), (1, 10), (2, 30)] {
        begin(&mut ledger, exchange, true);
        ledger.sent(&tag(exchange, 0, 1), Span::from_micros(wait));
        ledger.sent(&tag(exchange, 1, 2), Span::from_micros(900));
    }
    ledger.close();
    let row = row(&mut ledger);
    assert_eq!(row.first_wait_mean_us, Some(80.0 / 3.0));
    assert_eq!(row.first_wait_median_us, Some(30.0));
    assert_eq!(ledger.rows().iter().map(|row| row.first_wait_us).collect::<Vec<_>>(), [40, 10, 30]);
}

/// The median of first waits is given for clients with few exchanges; what others wait does not spill over to neighbours.
#[test]
fn first_waits_of_many_exchanges_are_not_kept() {
    for known in [None, Some(MOST_WAITS + 1), Some(2)] {
        let clients = [(0, known), (0, Some(1))];
        let mut ledger = Ledger::new(clients.into_iter(), 1, false, Instant::ORIGIN);
        for exchange in 0..3 {
            begin(&mut ledger, exchange, true);
            ledger.sent(&tag(exchange, 0, 1), WAIT);
        }
        ledger.close();
        assert_eq!(row(&mut ledger).first_wait_median_us, None);
        let mut other = FlowRow { flow: 1, ..FlowRow::default() };
        ledger.sum(&mut other);
        assert_eq!((other.first_wait_mean_us, other.first_wait_median_us), (None, None));
        assert!(ledger.waits.iter().skip(2).all(|&wait| wait == 0), "{:?}", ledger.waits);
        assert!(ledger.rows().is_empty());
    }
}

#[test]
fn requests_are_told_by_the_second_of_their_arrival_counted_from_the_event() {
    let mut ledger = ledger(&[4]).with_arrivals(1, at(2_500_000));
    for (exchange, arrival, arrives) in [(0, 400_000, 900_000), (1, 2_499_999, 2_600_000), (2, 2_500_000, 9_500_000)] {
        let request = ledger.arrival(0, 0, NO_EVENT, at(arrival));
        ledger.begin(0, exchange, request, None, false);
        ledger.sent(&tag(exchange, 0, arrival + 1_000), WAIT);
        ledger.delivered(&tag(exchange, 0, arrival), at(arrives));
    }
    ledger.arrival(0, 0, NO_EVENT, at(3_499_999));
    let row = |since_us, arrivals, delivered, delay_us| {
        let crossing_us = delay_us - 1_000 * delivered;
        ArrivalRow { group: 0, since_us, arrivals, delivered, delay_us, crossing_us }
    };
    let told = [row(-3_000_000, 1, 1, 500_000), row(-1_000_000, 1, 1, 100_001), row(0, 2, 1, 7_000_000)];
    assert_eq!(ledger.arrivals(), told);
}

#[test]
fn exchanges_of_a_client_that_has_many_are_found_as_those_of_one_that_has_few() {
    // Begun all at once, sent in order, answered the newest first, every third never: what is left is folded in the end.
    const COUNT: u32 = 4 * index::MANY as u32;
    let mut ledger = ledger(&[u64::from(COUNT)]);
    for number in 0..COUNT {
        let request = ledger.arrival(0, 0, 0, Instant::ORIGIN);
        ledger.begin(0, number, request, None, true);
    }
    for number in 0..COUNT {
        assert_eq!(ledger.unsent(0), Some(number), "the oldest");
        ledger.sent(&tag(number, 0, u64::from(number)), WAIT);
        assert_eq!(ledger.first_send(0, number), at(u64::from(number)));
    }
    assert_eq!(ledger.unsent(0), None);
    for number in (0..COUNT).rev().filter(|number| number % 3 > 0) {
        let sent = tag(number, 0, u64::from(number));
        ledger.reached(&sent);
        assert!(ledger.accepted(&sent, at(1000)).is_some());
        assert_eq!(ledger.first_send(0, number), Instant::NEVER, "it is on record no more");
    }
    let left = COUNT.div_ceil(3);
    assert_eq!(ledger.records.living(), left as usize);
    // Few again, but not none: what begins now is found beside them.
    for number in (0..left).rev().map(|third| 3 * third) {
        let _ = ledger.abandoned(0, number);
        ledger.gone(&tag(number, 0, u64::from(number)));
        if number == 3 {
            begin(&mut ledger, COUNT, false);
            ledger.sent(&tag(COUNT, 0, 2000), WAIT);
            assert_eq!(ledger.first_send(0, COUNT), at(2000));
            assert!(ledger.accepted(&tag(COUNT, 0, 2000), at(3000)).is_some());
        }
    }
    ledger.close();
    let row = row(&mut ledger);
    assert_eq!((row.transmissions, row.completed), (COUNT + 1, COUNT - left + 1));
    assert_eq!(ledger.records.living(), 0);
}
