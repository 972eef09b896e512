use demi_schemas::Scenario;
use serde_json::json;

use super::*;
use demi_replay::names::Names;

fn model(settings: &str) -> (AkkaRaft, Names) {
    let text = format!("model = \"akka-raft\"\nnetwork = \"unordered\"\n{settings}");
    let mut names = Names::default();
    let model = AkkaRaft::new(&Scenario::parse(&text).unwrap(), &mut names).unwrap();
    (model, names)
}

fn external(model: &AkkaRaft, names: &mut Names, type_: &str, payload: &str) -> Result<Msg, String> {
    model.external(ExternalMessage { type_, payload, fields: None }, names)
}

#[test]
fn members_are_sorted_as_texts() {
    let (model, names) = model("members = 10");
    let sorted: Vec<&str> = model.actors().iter().map(|id| names.get(*id)).collect();
    assert_eq!(sorted[..3], ["raft-member-1", "raft-member-10", "raft-member-2"]);
}

#[test]
fn payloads() {
    let (model, names) = model("");
    let id = model.actors()[1];
    let entries: Arc<[Entry]> =
        [Entry { word: 6482, term: 2, index: 1 }, Entry { word: 6483, term: 2, index: 2 }].into();
    let append = Msg::AppendEntries { term: 2, prev_term: 0, prev_index: 0, entries, commit: 0 };
    for (msg, payload) in [
        (
            Msg::RequestVote { term: 1, candidate: id, last_term: 0, last_index: 0 },
            "(RequestVote,Term(1),raft-member-2,Term(0),0)",
        ),
        (Msg::VoteCandidate { term: 1 }, "VoteCandidate(Term(1))"),
        (Msg::DeclineCandidate { term: 2 }, "DeclineCandidate(Term(2))"),
        (Msg::BeginElection, "BeginElection"),
        (Msg::ElectedAsLeader, "ElectedAsLeader"),
        (
            append,
            "AppendEntries(term:Term(2),prevLog:(Term(0),0),entries:List(\
             Entry(AppendWord(6482),Term(2),1,Some(Actor[akka:///deadLetters])), \
             Entry(AppendWord(6483),Term(2),2,Some(Actor[akka:///deadLetters]))),leaderCommit:0)",
        ),
        (Msg::AppendSuccessful { term: 2, index: 4 }, "AppendSuccessful(Term(2),4)"),
        (Msg::AppendRejected { term: 2, index: 0 }, "AppendRejected(Term(2))"),
        (
            Msg::ChangeConfiguration { members: model.members.clone() },
            "ChangeConfiguration(StableRaftConfiguration(Set(raft-member-1, raft-member-2, raft-member-3, \
             raft-member-4)))",
        ),
        (Msg::ClientMessage { word: 1664 }, "(ClientMessage,AppendWord(1664))"),
        (Msg::ElectionTimer { generation: 1 }, "TimerFingerprint(election-timer,ElectionTimeout,false,1)"),
        (Msg::HeartbeatTimer { generation: 10 }, "TimerFingerprint(heartbeat-timer,SendHeartbeat,true,10)"),
        (Msg::StateTimeout { generation: 3 }, "TimeoutMarkerFingerprint"),
    ] {
        assert_eq!(model.payload(&msg, &names), payload);
    }
}

#[test]
fn payloads_of_the_zero_indexed_family_and_options() {
    let (model, names) = model(
        "[switches]\nraft58b_zero_indexed_log = true\n[payload]\nclient_message_names_client = true\n\
         bare_change_configuration = true",
    );
    let entries = Arc::default();
    for (msg, payload) in [
        (
            Msg::AppendEntries { term: 8, prev_term: 1, prev_index: 1, entries, commit: -1 },
            "AppendEntries(term:Term(8),prevLog:(Term(1),1),entries:List())",
        ),
        (Msg::AppendRejected { term: 16, index: 0 }, "AppendRejected(Term(16),0)"),
        (Msg::ChangeConfiguration { members: model.members.clone() }, "ChangeConfiguration"),
        (Msg::ClientMessage { word: 6510 }, "ClientMessage(Actor[akka:///deadLetters],AppendWord(6510))"),
    ] {
        assert_eq!(model.payload(&msg, &names), payload);
    }
}

#[test]
fn client_messages_of_both_families_are_read() {
    let (model, mut names) = model("");
    for payload in
        ["(ClientMessage,AppendWord(7))", "ClientMessage(Actor[akka:///deadLetters],AppendWord(7))"]
    {
        let msg = external(&model, &mut names, "ClientMessage", payload);
        assert_eq!(msg, Ok(Msg::ClientMessage { word: 7 }));
    }
    let fields = json!({"class": "ClientMessage", "command": "AppendWord", "word": "8"});
    let message = ExternalMessage { type_: "ClientMessage", payload: "", fields: Some(&fields) };
    assert_eq!(model.external(message, &mut names), Ok(Msg::ClientMessage { word: 8 }));
    assert!(external(&model, &mut names, "ClientMessage", "(ClientMessage,Nothing)").is_err());
    let error = external(&model, &mut names, "RequestConfiguration", "RequestConfiguration").unwrap_err();
    assert!(error.contains("expected ClientMessage or ChangeConfiguration"), "{error}");
}

#[test]
fn configurations_are_read() {
    let (model, mut names) = model("");
    let all = Msg::ChangeConfiguration { members: model.members.clone() };
    assert_eq!(external(&model, &mut names, "ChangeConfiguration", "ChangeConfiguration"), Ok(all.clone()));
    let payload = model.payload(&all, &names);
    assert_eq!(external(&model, &mut names, "ChangeConfiguration", &payload), Ok(all));
    let fields = json!({"members": ["raft-member-3", "raft-member-9"]});
    let message = ExternalMessage { type_: "ChangeConfiguration", payload: "", fields: Some(&fields) };
    let members: Arc<[ActorId]> = [names.id("raft-member-3"), names.id("raft-member-9")].into();
    assert_eq!(model.external(message, &mut names), Ok(Msg::ChangeConfiguration { members }));
}

mod checks {
    use super::*;

    fn member(role: Role, term: i32, log: &[(u64, i32, i32)], committed: i32) -> Member {
        let mut m = Member { role, term, committed, ..Member::default() };
        for &(word, term, index) in log {
            m.push(Entry { word, term, index });
        }
        m
    }

    fn check(members: &[Member], history: &mut History) -> Vec<String> {
        let (model, names) = model("");
        let seen: Vec<(ActorId, &Member)> = model.members.iter().copied().zip(members).collect();
        let mut found = Vec::new();
        invariants::check(&model.config, &names, &seen, history, &mut found);
        found.into_iter().map(|violation| violation.fingerprint).collect()
    }

    #[test]
    fn two_leaders_of_one_term_also_one_after_the_other() {
        let leader = || member(Role::Leader, 3, &[], 0);
        let follower = || member(Role::Follower, 3, &[], 0);
        let key = ["ElectionSafety:raft-member-1:raft-member-2"];
        assert_eq!(check(&[leader(), leader()], &mut History::default()), key);
        let mut history = History::default();
        assert!(check(&[follower(), leader()], &mut history).is_empty());
        assert_eq!(check(&[leader(), follower()], &mut history), key);
    }

    #[test]
    fn logs_that_share_an_entry_behind_a_difference() {
        let log = |entries: &[(u64, i32, i32)]| member(Role::Follower, 3, entries, 0);
        let (a, b) = (log(&[(1, 1, 1), (2, 2, 2)]), log(&[(9, 1, 1), (2, 2, 2)]));
        let key = ["LogMatch:raft-member-1:raft-member-2"];
        assert_eq!(check(&[a.clone(), b], &mut History::default()), key);
        assert!(check(&[a.clone(), log(&[(1, 1, 1)])], &mut History::default()).is_empty());
        assert!(check(&[a.clone(), log(&[(1, 1, 1), (5, 3, 2)])], &mut History::default()).is_empty());
        let short = log(&[(2, 2, 2)]);
        assert_eq!(check(&[a, short], &mut History::default()), key);
    }

    #[test]
    fn a_later_leader_lacks_a_committed_entry() {
        let mut history = History::default();
        let old = member(Role::Follower, 2, &[(1, 1, 1)], 1);
        let key = ["LeaderCompleteness:raft-member-2"];
        let lacking = member(Role::Leader, 2, &[], 0);
        assert_eq!(check(&[old.clone(), lacking.clone()], &mut History::default()), key);
        assert!(check(&[old.clone(), member(Role::Follower, 2, &[], 0)], &mut history).is_empty());
        // The committed entry is remembered when nobody has it any more.
        let blank = member(Role::Follower, 2, &[], 0);
        assert_eq!(check(&[blank.clone(), lacking], &mut history), key);
        assert!(
            check(&[old.clone(), member(Role::Leader, 2, &[(1, 1, 1)], 0)], &mut History::default())
                .is_empty()
        );
        assert!(check(&[old, member(Role::Leader, 1, &[], 0)], &mut History::default()).is_empty());
    }

    #[test]
    fn state_machines_that_differ() {
        let words = |words: &[u64]| Member { words: words.to_vec(), ..Member::default() };
        let found = check(&[words(&[1, 2]), words(&[1]), words(&[1, 3, 4])], &mut History::default());
        assert_eq!(found, ["StateMachine:raft-member-1-raft-member-3"]);
        assert!(check(&[words(&[1, 2]), words(&[1])], &mut History::default()).is_empty());
    }
}
