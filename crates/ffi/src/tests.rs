use std::ffi::CStr;

use bentpipe_cc::{Ack, BackOff, CongestionControl, Custom, Loss, Path, Timeout};

use super::*;

/// An algorithm with a defect.
struct Broken;

impl CongestionControl for Broken {
    fn window(&self) -> f64 {
        10.0
    }
    fn on_ack(&mut self, _: &Ack, _: &Path) {
        panic!("a defect");
    }
    fn on_loss(&mut self, _: &Loss, _: &Path) {}
    fn on_rto(&mut self, _: &Timeout, _: &Path) -> BackOff {
        BackOff::Double
    }
}

#[test]
fn a_panic_stays_inside_and_makes_the_handle_unusable() {
    let algorithm = Algorithm::Custom(Custom::new("broken", |_| Box::new(Broken)));
    let control = PacketControl::new(&algorithm, &Settings::default()).expect("it needs nothing");
    let cc = Box::into_raw(Box::new(BentpipeCc { control, panicked: false }));
    // SAFETY: `cc` is a handle until it is freed at the end.
    unsafe {
        assert_eq!(bentpipe_cc_on_sent(cc, 1, 0, 1200), BentpipeCcStatus::Ok);
        assert_eq!(bentpipe_cc_on_acked(cc, 0), BentpipeCcStatus::Ok);
        assert_eq!(bentpipe_cc_end_ack(cc, 2, 1, false, 0), BentpipeCcStatus::Panicked);
        assert_eq!(bentpipe_cc_on_sent(cc, 3, 1, 1200), BentpipeCcStatus::Panicked);
        assert_eq!(bentpipe_cc_departure(cc, 3, 1200), BENTPIPE_CC_NEVER);
        let message = CStr::from_ptr(bentpipe_cc_last_error()).to_str().expect("it is UTF-8");
        assert!(message.contains("free the handle"), "{message}");
        bentpipe_cc_free(cc);
    }
}

#[test]
fn a_handle_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<BentpipeCc>();
}
