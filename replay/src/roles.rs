//! A model put together of roles: each kind of actor has a type, and a state type, of its own.
//!
//! A [`Role`] says what each of its actors does; [`Roles`] puts them together, and is a [`Model`]. Messages and states are written by serde, so
//! nothing else is needed to fuzz, replay, minimize and export.
//!
//! ```
//! use demi_replay::roles::{Me, Role, Roles};
//! use demi_replay::{ActorId, Ctx, Group, Names, Simulator};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
//! enum Msg {
//!     Want,
//!     Acquire,
//!     Granted,
//! }
//!
//! struct Server;
//!
//! impl Role for Server {
//!     type Msg = Msg;
//!     type State = Option<ActorId>; // who has the lock
//!
//!     fn initial(&self, _: Me<'_>) -> Self::State {
//!         None
//!     }
//!
//!     fn deliver(&self, _: Me<'_>, holder: &mut Self::State, _: &Msg, ctx: &mut Ctx<'_, Msg>) {
//!         *holder = Some(ctx.sender()); // the bug: somebody may have it
//!         ctx.send(ctx.sender(), Msg::Granted);
//!     }
//! }
//!
//! struct Client {
//!     server: ActorId,
//! }
//!
//! impl Role for Client {
//!     type Msg = Msg;
//!     type State = bool; // whether it works under the lock
//!
//!     fn initial(&self, _: Me<'_>) -> bool {
//!         false
//!     }
//!
//!     fn start(&self, _: Me<'_>, _: &mut bool, ctx: &mut Ctx<'_, Msg>) {
//!         ctx.set_timer("want", Msg::Want);
//!     }
//!
//!     fn deliver(&self, _: Me<'_>, works: &mut bool, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
//!         match msg {
//!             Msg::Want => ctx.send(self.server, Msg::Acquire),
//!             _ => *works = true,
//!         }
//!     }
//! }
//!
//! let mut names = Names::default();
//! let (server, clients) = (Group::single(&mut names, "server"), Group::numbered(&mut names, "client", 2));
//! let client = Client { server: server.members()[0] };
//! let model = Roles::new().with(&server, Server).with(&clients, client).at_most_one("MutualExclusion", |works: &bool| *works);
//! # use demi_replay::fuzz::{FuzzOptions, fuzz};
//! let scenario = demi_schemas::Scenario::parse("model = 'lock'\nnetwork = 'fifo'").unwrap();
//! let mut simulator = Simulator::new(model, names, &scenario).unwrap();
//! let found = fuzz(&mut simulator, &scenario, &FuzzOptions::new(1, 10, 20), &mut |_| true).unwrap();
//! assert_eq!(found.unwrap().violation, ["MutualExclusion"]);
//! ```

use std::any::Any;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use demi_schemas::{Known, Scenario, ScenarioError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::{Ctx, Logs, Model, Proposal, Runtime, Serialized, View, Violation, Workload};
use crate::names::{ActorId, Group, Names};
use crate::weight;

/// What is sent between actors of any role, and what their timers carry.
pub trait Message: Clone + Debug + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<T: Clone + Debug + Eq + Hash + Serialize + DeserializeOwned + Send + Sync + 'static> Message for T {}

/// An actor, as it knows itself.
#[derive(Clone, Copy, Debug)]
pub struct Me<'a> {
    id: ActorId,
    index: usize,
    group: &'a Group,
}

impl<'a> Me<'a> {
    /// The actor.
    #[must_use]
    pub fn id(self) -> ActorId {
        self.id
    }

    /// Its place among the actors of its role, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.index
    }

    /// What it is: `server`, `client`.
    #[must_use]
    pub fn role(self) -> &'a str {
        self.group.role()
    }

    /// The actors of its role, itself included.
    #[must_use]
    pub fn group(self) -> &'a Group {
        self.group
    }
}

/// What each actor of a role does. What is fixed in a run, such as who the others are and which bugs are switched on, stands in the value itself.
pub trait Role: Send + Sync + 'static {
    /// The state of one actor. Equality and hash decide when two configurations are the same; a predicate of the scenario may ask for its fields.
    type State: Clone + Debug + Eq + Hash + Serialize + Send + Sync + 'static;
    /// The messages of the system.
    type Msg: Message;

    /// The state of an actor that has just started, or restarted without a disk.
    fn initial(&self, me: Me<'_>) -> Self::State;

    /// What an actor does when it starts; nothing by default.
    fn start(&self, me: Me<'_>, state: &mut Self::State, ctx: &mut Ctx<'_, Self::Msg>) {
        let _ = (me, state, ctx);
    }

    /// Handles one delivered message or fired timer to the end.
    fn deliver(&self, me: Me<'_>, state: &mut Self::State, msg: &Self::Msg, ctx: &mut Ctx<'_, Self::Msg>);

    /// What was on the disk of an actor that failed in this state: the state in which it restarts. Nothing, the default, where it has no disk.
    fn recovered(&self, me: Me<'_>, failed: &Self::State) -> Option<Self::State> {
        let _ = (me, failed);
        None
    }
}

/// The state of an actor of some role.
pub struct RoleState(Box<dyn Held>);

impl RoleState {
    /// The state, if it is of that type.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }
}

impl Clone for RoleState {
    fn clone(&self) -> Self {
        RoleState(self.0.copy())
    }
}

impl Debug for RoleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for RoleState {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for RoleState {}

impl Hash for RoleState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.feed(state);
    }
}

impl Serialize for RoleState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// What a state of any type can do.
trait Held: Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn copy(&self) -> Box<dyn Held>;
    fn equals(&self, other: &dyn Held) -> bool;
    fn feed(&self, hasher: &mut dyn Hasher);
    fn bytes(&self) -> usize;
    fn json(&self) -> serde_json::Result<Value>;
}

impl<T: Clone + Debug + Eq + Hash + Serialize + Send + Sync + 'static> Held for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copy(&self) -> Box<dyn Held> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Held) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }

    fn feed(&self, mut hasher: &mut dyn Hasher) {
        // Whoever takes equal hashes for equal states must not mix those of two roles.
        std::any::type_name::<T>().hash(&mut hasher);
        self.hash(&mut hasher);
    }

    fn bytes(&self) -> usize {
        weight::of(self)
    }

    fn json(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}

/// A role whose type is forgotten.
trait Played<Msg>: Send + Sync {
    fn initial(&self, me: Me<'_>) -> RoleState;
    fn start(&self, me: Me<'_>, state: &mut RoleState, ctx: &mut Ctx<'_, Msg>);
    fn deliver(&self, me: Me<'_>, state: &mut RoleState, msg: &Msg, ctx: &mut Ctx<'_, Msg>);
    fn recovered(&self, me: Me<'_>, failed: &RoleState) -> Option<RoleState>;
}

impl<R: Role> Played<R::Msg> for R {
    fn initial(&self, me: Me<'_>) -> RoleState {
        RoleState(Box::new(Role::initial(self, me)))
    }

    fn start(&self, me: Me<'_>, state: &mut RoleState, ctx: &mut Ctx<'_, R::Msg>) {
        if let Some(state) = state.0.as_any_mut().downcast_mut() {
            Role::start(self, me, state, ctx);
        }
    }

    fn deliver(&self, me: Me<'_>, state: &mut RoleState, msg: &R::Msg, ctx: &mut Ctx<'_, R::Msg>) {
        if let Some(state) = state.0.as_any_mut().downcast_mut() {
            Role::deliver(self, me, state, msg, ctx);
        }
    }

    fn recovered(&self, me: Me<'_>, failed: &RoleState) -> Option<RoleState> {
        Role::recovered(self, me, failed.get()?).map(|state| RoleState(Box::new(state)))
    }
}

/// What the invariants look at: the states of the actors that run.
pub struct States<'a, 'v> {
    view: &'a View<'v, RoleState>,
}

impl<'v> States<'_, 'v> {
    /// The state of an actor, if it runs and its state is of that type.
    #[must_use]
    pub fn get<T: 'static>(&self, actor: ActorId) -> Option<&'v T> {
        self.view.state(actor)?.get()
    }

    /// The actors that run and have a state of that type, in the order of their ids.
    pub fn all<T: 'static>(&self) -> impl Iterator<Item = (ActorId, &'v T)> + '_ {
        self.view.actors().filter_map(|actor| Some((actor, self.get(actor)?)))
    }

    /// The name of an actor.
    #[must_use]
    pub fn name(&self, actor: ActorId) -> &'v str {
        self.view.names.get(actor)
    }
}

/// Finds who breaks an invariant; an empty list where it holds.
type Breakers = dyn Fn(&States<'_, '_>) -> Vec<ActorId> + Send + Sync;
/// Gives the `n`-th random message from outside.
type Requests<Msg> = dyn Fn(u64, u64) -> Option<Proposal<Msg>> + Send + Sync;

/// A system of roles. See the [module's](self) first lines.
pub struct Roles<Msg> {
    actors: Vec<ActorId>,
    /// For each actor by its id: its role's place, and its own in it.
    places: Vec<Option<(usize, usize)>>,
    roles: Vec<(Group, Arc<dyn Played<Msg>>)>,
    invariants: Vec<(Arc<str>, Arc<Breakers>)>,
    first: Vec<(ActorId, Msg)>,
    requests: Option<Arc<Requests<Msg>>>,
}

impl<Msg: Clone> Clone for Roles<Msg> {
    fn clone(&self) -> Self {
        Roles {
            actors: self.actors.clone(),
            places: self.places.clone(),
            roles: self.roles.clone(),
            invariants: self.invariants.clone(),
            first: self.first.clone(),
            requests: self.requests.clone(),
        }
    }
}

impl<Msg: Message> Default for Roles<Msg> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Msg: Message> Roles<Msg> {
    /// A system without actors.
    #[must_use]
    pub fn new() -> Self {
        Roles {
            actors: Vec::new(),
            places: Vec::new(),
            roles: Vec::new(),
            invariants: Vec::new(),
            first: Vec::new(),
            requests: None,
        }
    }

    /// With the actors of a group, who play that role. They start in the order in which they are added.
    #[must_use]
    pub fn with<R: Role<Msg = Msg>>(mut self, group: &Group, role: R) -> Self {
        for (index, &actor) in group.members().iter().enumerate() {
            if self.places.len() <= actor.index() {
                self.places.resize(actor.index() + 1, None);
            }
            self.places[actor.index()] = Some((self.roles.len(), index));
            self.actors.push(actor);
        }
        self.roles.push((group.clone(), Arc::new(role)));
        self
    }

    /// With an invariant: a function that gives the actors that break it, an empty list where it holds. It sees one configuration; what it must
    /// know of those before stands in the states.
    #[must_use]
    pub fn invariant(
        mut self,
        name: &str,
        broken_by: impl Fn(&States<'_, '_>) -> Vec<ActorId> + Send + Sync + 'static,
    ) -> Self {
        self.invariants.push((name.into(), Arc::new(broken_by)));
        self
    }

    /// With the invariant that of at most one actor with such a state something is true.
    #[must_use]
    pub fn at_most_one<T: 'static>(
        self,
        name: &str,
        is: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.invariant(name, move |states| {
            let those: Vec<ActorId> =
                states.all::<T>().filter(|(_, state)| is(state)).map(|(actor, _)| actor).collect();
            if those.len() > 1 { those } else { Vec::new() }
        })
    }

    /// With a message from outside that every random run begins with.
    #[must_use]
    pub fn begins_with(mut self, to: ActorId, msg: Msg) -> Self {
        self.first.push((to, msg));
        self
    }

    /// With random messages from outside: the function gets the number of the message and a uniformly random number, and gives the receiver and the
    /// message.
    #[must_use]
    pub fn requests(
        mut self,
        request: impl Fn(u64, u64) -> Option<(ActorId, Msg)> + Send + Sync + 'static,
    ) -> Self {
        self.requests =
            Some(Arc::new(move |n, choice| request(n, choice).map(|(to, msg)| Proposal::new(to, msg))));
        self
    }

    /// The system, if the scenario names nothing but its invariants and these switches and settings.
    ///
    /// # Errors
    /// When it names another, with the nearest that there is.
    pub fn known_to(
        self,
        scenario: &Scenario,
        switches: &[&str],
        settings: &[&str],
    ) -> Result<Self, ScenarioError> {
        let invariants: Vec<&str> = self.invariants.iter().map(|(name, _)| &**name).collect();
        Known { switches, settings, invariants: &invariants, ..Known::default() }.check(scenario)?;
        Ok(self)
    }

    fn me(&self, actor: ActorId) -> Option<(Me<'_>, &dyn Played<Msg>)> {
        let (role, index) = self.places.get(actor.index()).copied().flatten()?;
        let (group, role) = &self.roles[role];
        Some((Me { id: actor, index, group }, &**role))
    }
}

/// The state of what is no actor of any role.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Nobody;

impl<Msg: Message> Model for Roles<Msg> {
    type State = RoleState;
    type Msg = Msg;
    type History = ();

    fn actors(&self) -> &[ActorId] {
        &self.actors
    }

    fn initial(&self, actor: ActorId) -> RoleState {
        let state = self.me(actor).map(|(me, role)| role.initial(me));
        state.unwrap_or_else(|| RoleState(Box::new(Nobody)))
    }

    fn start(&self, state: &mut RoleState, ctx: &mut Ctx<'_, Msg>) {
        if let Some((me, role)) = self.me(ctx.me()) {
            role.start(me, state, ctx);
        }
    }

    fn deliver(&self, state: &mut RoleState, msg: &Msg, ctx: &mut Ctx<'_, Msg>) {
        if let Some((me, role)) = self.me(ctx.me()) {
            role.deliver(me, state, msg, ctx);
        }
    }

    fn check(&self, view: &View<'_, RoleState>, (): &mut (), found: &mut Vec<Violation>) {
        for (name, broken_by) in &self.invariants {
            let affected = broken_by(&States { view });
            if !affected.is_empty() {
                found.push(Violation { fingerprint: name.to_string(), affected });
            }
        }
    }

    fn bytes(&self, state: &RoleState) -> usize {
        state.0.bytes()
    }

    fn logs(&self) -> &dyn Logs<RoleState, Msg> {
        &Serialized
    }

    fn runtime(&self) -> &dyn Runtime<RoleState, Msg> {
        self
    }

    fn workload(&self) -> &dyn Workload<RoleState, Msg> {
        self
    }
}

impl<Msg: Message> Runtime<RoleState, Msg> for Roles<Msg> {
    fn recovered(&self, actor: ActorId, failed: &RoleState) -> Option<RoleState> {
        let (me, role) = self.me(actor)?;
        role.recovered(me, failed)
    }
}

impl<Msg: Message> Workload<RoleState, Msg> for Roles<Msg> {
    fn bootstrap(&self, _: &Names) -> Vec<Proposal<Msg>> {
        self.first.iter().map(|(to, msg)| Proposal::new(*to, msg.clone())).collect()
    }

    fn client_message(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        self.requests.as_ref()?(n, choice)
    }
}
