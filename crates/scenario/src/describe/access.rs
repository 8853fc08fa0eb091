use bentpipe_mac::{
    Access, AlohaConfig, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, RequestStrategy, SchedulerPlace,
    SlottedAlohaConfig,
};

use crate::form::Form;
use crate::unit::{Bytes, Count, FEW, FLAG, PROBABILITY, TIME, TIME_ABOVE_ZERO, Words};

const STRATEGIES: Words<RequestStrategy> = Words(&[
    ("combined", RequestStrategy::Combined),
    ("piggyback", RequestStrategy::Piggyback),
    ("random", RequestStrategy::Random),
    ("fixed", RequestStrategy::Fixed),
]);

const PLACES: Words<SchedulerPlace> =
    Words(&[("hub", SchedulerPlace::Hub), ("onboard", SchedulerPlace::Onboard)]);

/// Access scheme of a shared link; `None` if every member of the group has its own channel.
pub(super) fn access(form: &mut Form<'_>, access: &mut Option<Access>) {
    let each = vec![
        None,
        Some(Access::Tdma(Frame::default())),
        Some(Access::Dama(DamaConfig::default())),
        Some(Access::CfDama(CfDamaConfig::default())),
        Some(Access::Aloha(AlohaConfig::default())),
        Some(Access::SlottedAloha(SlottedAlohaConfig::default())),
        Some(Access::Crdsa(CrdsaConfig::default())),
    ];
    let name = |access: &Option<Access>| access.as_ref().map_or("none", Access::name);
    form.variant(access, name, each, |form, access| match access {
        None => {}
        Some(Access::Tdma(config)) => frame(form, config),
        Some(Access::Dama(config)) => {
            frame(form, &mut config.frame);
            form.field("superframe", &mut config.superframe, &FEW);
            form.field("idle-superframes", &mut config.idle_superframes, &FEW);
            form.field("request-loss", &mut config.request_loss, &PROBABILITY);
        }
        Some(Access::CfDama(config)) => {
            frame(form, &mut config.frame);
            form.field("requests", &mut config.strategy, &STRATEGIES);
            form.field("minislots", &mut config.minislots, &FEW);
            form.field("request-limit", &mut config.request_limit, &FEW);
            form.field("request-loss", &mut config.request_loss, &PROBABILITY);
            form.field("scheduler", &mut config.scheduler, &PLACES);
        }
        Some(Access::Aloha(config)) => {
            form.field("header", &mut config.header, &Bytes::PACKET);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("mean-backoff", &mut config.mean_backoff, &TIME);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
            form.field("detection", &mut config.detection, &FLAG);
        }
        Some(Access::SlottedAloha(config)) => {
            form.field("slot", &mut config.slot_bytes, &Bytes::PACKET);
            form.field("guard", &mut config.guard, &TIME);
            form.field("header", &mut config.header, &Bytes::PACKET);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("backoff-limit", &mut config.backoff_limit, &Count::FROM_ZERO);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
        }
        Some(Access::Crdsa(config)) => {
            frame(form, &mut config.frame);
            form.field("replicas", &mut config.replicas, &FEW);
            form.field("iterations", &mut config.iterations, &FEW);
            form.field("timeout", &mut config.timeout, &TIME_ABOVE_ZERO);
            form.field("backoff-limit", &mut config.backoff_limit, &Count::FROM_ZERO);
            form.field("retries", &mut config.retries, &Count::FROM_ZERO);
        }
    });
}

fn frame(form: &mut Form<'_>, frame: &mut Frame) {
    form.field("frame", &mut frame.length, &TIME_ABOVE_ZERO);
    form.field("slots", &mut frame.slots, &Count::FROM_ZERO);
    form.field("overhead", &mut frame.overhead, &PROBABILITY);
    form.field("header", &mut frame.header, &Bytes::PACKET);
}
