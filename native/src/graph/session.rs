//! A session that is closed in its turn.

use super::turn::Turns;
use ort::session::Session;

/// An open session, wherever it is dropped.
pub struct Opened {
    /// None only while this is dropped.
    session: Option<Session>,
    turns: Turns,
}

impl Opened {
    /// Of a session that was opened in its turn.
    pub fn new(session: Session, turns: Turns) -> Opened {
        Opened { session: Some(session), turns }
    }

    /// The session, for a call that waits for its turn.
    pub fn get(&self) -> &Session {
        self.session.as_ref().expect("taken only by drop")
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _turn = self.turns.wait();
        self.session = None;
    }
}
