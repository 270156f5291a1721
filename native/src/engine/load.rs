//! Loading and unloading models, each on a thread of its own.

use super::{Answer, Engine, Place, misuse};
use crate::layout::MODELS_MAX;
use crate::model::Model;
use crate::status::{Failure, Kind, Status, Ticket};
use crate::sync::lock;
use crate::thread;
use std::sync::atomic::Ordering;

impl Engine {
    /// Loads a model; the completion has the outcome.
    pub fn load(&self, plan: String) -> Answer<Ticket> {
        let free = self.models.iter().position(|slot| {
            let mut place = lock(&slot.place);
            let free = matches!(*place, Place::Free);
            if free {
                *place = Place::Loading;
            }
            free
        });
        let Some(index) = free else {
            return Err(Failure::new(Status::Busy, format!("{MODELS_MAX} models are loaded already")));
        };
        let ticket = Ticket::new(Kind::Model, self.generation.fetch_add(1, Ordering::Relaxed), index);
        self.models[index].ticket.store(ticket.0, Ordering::Relaxed);
        let (host, models) = (self.host.clone(), self.models.clone());
        self.spawn("tendon-load", move || {
            let loaded = std::panic::catch_unwind(|| Model::load(&plan, index, &host))
                .unwrap_or_else(|_| Err(Failure::new(Status::Panic, "loading panicked")));
            let slot = &models[index];
            let (place, status) = match loaded {
                Ok(model) => (Place::Ready(model), Status::Ok),
                Err(failure) => {
                    lock(&slot.error).set(format_args!("{}", failure.text));
                    (Place::Failed, failure.status)
                }
            };
            *lock(&slot.place) = place;
            (host.done)(ticket.0, status as i32);
        })
        .inspect_err(|_| *lock(&self.models[index].place) = Place::Free)?;
        Ok(ticket)
    }

    /// Unloads a model. Its ticket is invalid from here on; the completion comes when its memory is free.
    pub fn unload(&self, ticket: Ticket) -> Answer<()> {
        let Some(slot) = self.slot(ticket) else { return misuse("unknown model") };
        let place = std::mem::take(&mut *lock(&slot.place));
        match place {
            Place::Ready(model) => {
                slot.ticket.store(0, Ordering::Relaxed);
                let host = self.host.clone();
                let kept = model.clone();
                let spawned = self.spawn("tendon-unload", move || {
                    model.close();
                    drop(model);
                    (host.done)(ticket.0, Status::Ok as i32);
                });
                // If no thread can be made, the caller waits: the replicas must end.
                if spawned.is_err() {
                    kept.close();
                    (self.host.done)(ticket.0, Status::Ok as i32);
                }
                Ok(())
            }
            Place::Failed => {
                slot.ticket.store(0, Ordering::Relaxed);
                (self.host.done)(ticket.0, Status::Ok as i32);
                Ok(())
            }
            other => {
                *lock(&slot.place) = other;
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
