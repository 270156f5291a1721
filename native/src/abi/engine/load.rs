//! Loads and unloads models, each on its own thread.

use super::{Answer, Engine, NAMED, SlotState, misuse};
use crate::core::completion::count_panic;
use crate::core::layout::MODELS_MAX;
use crate::core::status::{Failure, Status};
use crate::core::sync::lock;
use crate::core::thread;
use crate::core::ticket::{FREE, Ticket};
use crate::model::Model;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Engine {
    /// Loads a model; the completion has the outcome.
    pub fn load(&self, plan: String) -> Answer<Ticket> {
        let given_up = Arc::new(AtomicBool::new(false));
        let free = self.models.iter().position(|slot| {
            let mut state = lock(&slot.state);
            let free = matches!(*state, SlotState::Free);
            if free {
                *state = SlotState::Loading(given_up.clone());
            }
            free
        });
        let Some(index) = free else {
            return Err(Failure::new(Status::Busy, format!("{MODELS_MAX} models are loaded already")));
        };
        let word = &self.models[index].word;
        let ticket = word.next().expect("a model's slot outlives its generations");
        word.open(ticket, NAMED);
        let (host, models) = (self.host.clone(), self.models.clone());
        self.spawn("tendon-load", move || {
            let loaded =
                std::panic::catch_unwind(|| Model::load(&plan, ticket, &host, &given_up)).unwrap_or_else(|_| {
                    count_panic();
                    Err(Failure::new(Status::Panic, "loading panicked"))
                });
            let slot = &models[index];
            let (state, status) = match loaded {
                Ok(model) => (SlotState::Ready(model), Status::Ok),
                Err(failure) => {
                    lock(&slot.error).set(format_args!("{}", failure.text));
                    (SlotState::Failed, failure.status)
                }
            };
            *lock(&slot.state) = state;
            host.completions.tell(ticket, status);
        })
        .inspect_err(|_| *lock(&self.models[index].state) = SlotState::Free)?;
        Ok(ticket)
    }

    /// Unloads a model. Its ticket is invalid from here on; the completion comes when its memory is free.
    pub fn unload(&self, ticket: Ticket) -> Answer<()> {
        let Some(slot) = self.slot(ticket) else { return misuse("unknown model") };
        let state = std::mem::take(&mut *lock(&slot.state));
        match state {
            SlotState::Ready(model) => {
                slot.word.turn(ticket, NAMED, FREE);
                let host = self.host.clone();
                let kept = model.clone();
                let spawned = self.spawn("tendon-unload", move || {
                    let _entered = model.enter();
                    model.close();
                    drop(model);
                    host.completions.tell(ticket, Status::Ok);
                });
                // If no thread can be made, the caller waits: the replicas must end.
                if spawned.is_err() {
                    kept.close();
                    self.host.completions.tell(ticket, Status::Ok);
                }
                Ok(())
            }
            SlotState::Failed => {
                slot.word.turn(ticket, NAMED, FREE);
                self.host.completions.tell(ticket, Status::Ok);
                Ok(())
            }
            other => {
                *lock(&slot.state) = other;
                misuse("the model is still loading")
            }
        }
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Answer<()> {
        let thread = thread::spawn(name, work).map_err(|text| Failure::new(Status::Load, text))?;
        let mut threads = lock(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }
}
