//! `[incidents]` and `[receivers.NAME]`.

use std::net::{IpAddr, SocketAddr};

use demi_incidents::event::News;
use demi_incidents::sources::SYSTEM_LABEL;
use demi_incidents::tell::Form;
use serde::Deserialize;
use serde::de::Error as _;
use toml::{Table, Value};
use url::{Host, Url};

use crate::net::security::ListenConfig;

/// Where the pages are, where nobody says otherwise.
const LISTEN: &str = "127.0.0.1:9467";
/// The keys of a listener.
const LISTENER: [&str; 6] =
    ["listen", "tls_cert", "tls_key", "tls_client_ca", "token_file", "max_connections"];

/// `[incidents]`.
#[derive(Clone, Debug)]
pub struct IncidentsConfig {
    /// Where pages and requests are served.
    pub listen: ListenConfig,
    /// The rest.
    pub settings: Settings,
}

/// `[incidents]` without the keys of its listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// How many incidents are worked on at the same time; 0 leaves all to workers elsewhere. By default half of the cores, at least 1.
    pub at_once: usize,
    /// After how many seconds without a sign of life the worker of an incident is taken for lost.
    pub lease_secs: u64,
    /// How many seconds a violation record has to be in the store before its past is taken for complete.
    pub settle_secs: u64,
    /// The address by which people reach the pages, for links in messages.
    pub public_url: Option<Url>,
    /// The label of alerts that names the system.
    pub system_label: String,
    /// Most bytes of a log that somebody sends.
    pub upload_bytes: u64,
    /// Most bytes to which it may unpack.
    pub unpacked_bytes: u64,
    /// Most bytes of all that was made of incidents and brought for them; the oldest of the most frequent bugs go first.
    pub space_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Settings {
            at_once: (cores / 2).max(1),
            lease_secs: 60,
            settle_secs: 10,
            public_url: None,
            system_label: SYSTEM_LABEL.to_owned(),
            upload_bytes: 256 << 20,
            unpacked_bytes: 4 << 30,
            space_bytes: 20 << 30,
        }
    }
}

impl<'de> Deserialize<'de> for IncidentsConfig {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut rest = Table::deserialize(from)?;
        let mut listener = Table::new();
        listener.insert("listen".to_owned(), Value::String(LISTEN.to_owned()));
        for key in LISTENER {
            if let Some(value) = rest.remove(key) {
                listener.insert(key.to_owned(), value);
            }
        }
        let listen: ListenConfig =
            Value::Table(listener).try_into().map_err(|e: toml::de::Error| D::Error::custom(e.message()))?;
        let mut settings: Settings =
            Value::Table(rest).try_into().map_err(|e: toml::de::Error| D::Error::custom(e.message()))?;
        if settings.lease_secs == 0 {
            return Err(D::Error::custom("lease_secs must be at least 1"));
        }
        settings.public_url = settings.public_url.or_else(|| own_url(&listen));
        Ok(IncidentsConfig { listen, settings })
    }
}

/// The address of the pages for who is on the same machine, or in the same network; nothing where the configuration does not say it.
fn own_url(listen: &ListenConfig) -> Option<Url> {
    let scheme = if listen.tls_cert.is_some() { "https" } else { "http" };
    let at = listen.listen;
    let is_known = at.port() != 0 && !at.ip().is_unspecified();
    is_known.then(|| Url::parse(&format!("{scheme}://{at}/")).ok()).flatten()
}

/// A range of addresses, as in `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    address: IpAddr,
    bits: u32,
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bad = || D::Error::custom(format!("'{text}' is no range of addresses, such as 10.0.0.0/8"));
        let (address, bits) = text.split_once('/').ok_or_else(bad)?;
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let bits: u32 = bits.parse().map_err(|_| bad())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most { Err(bad()) } else { Ok(Range { address, bits }) }
    }
}

impl Range {
    /// Whether an address lies in it.
    #[must_use]
    pub fn holds(self, address: IpAddr) -> bool {
        let number = |address: IpAddr| match address {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 4),
            IpAddr::V6(v6) => (v6.to_bits(), 6),
        };
        let ((own, kind), (other, other_kind)) = (number(self.address), number(address));
        let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
        kind == other_kind && own & mask == other & mask
    }
}

/// `[receivers.NAME]`: who is told.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverConfig {
    /// What it is.
    #[serde(rename = "type")]
    pub form: Form,
    /// Where it is.
    pub url: Url,
    /// What it is told; everything where nothing is said.
    #[serde(default = "all_news")]
    pub events: Vec<News>,
    /// Globs of systems; all where there is none.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Private addresses that it may have.
    #[serde(default)]
    pub allow: Vec<Range>,
    /// Secrets that sign what is sent: the first, and while rotating the one before. From the environment alone.
    #[serde(skip)]
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for ReceiverConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a secret, as those of Slack do.
        f.debug_struct("ReceiverConfig")
            .field("form", &self.form)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

fn all_news() -> Vec<News> {
    News::ALL.to_vec()
}

impl ReceiverConfig {
    /// Whether a connection to an address may be made. What stands in the configuration as an address is meant; one that a name leads to must be
    /// public, or allowed.
    #[must_use]
    pub fn may_reach(&self, address: IpAddr) -> bool {
        if self.allow.iter().any(|range| range.holds(address)) {
            return !is_never_reached(address);
        }
        is_public(address)
    }

    /// # Errors
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !["http", "https"].contains(&self.url.scheme()) {
            return Err("url must begin with https:// or http://".to_owned());
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            return Err(
                "url must not hold a user or a password: secrets come from the environment".to_owned()
            );
        }
        let literal = match self.url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) => None,
            None => return Err("url names no host".to_owned()),
        };
        if literal.is_some_and(is_never_reached) {
            return Err("url leads to an address that is no receiver's".to_owned());
        }
        if self.form == Form::Pagerduty && self.secrets.is_empty() {
            return Err("the routing key is missing: it comes from the environment".to_owned());
        }
        Ok(())
    }
}

/// Link-local addresses, where clouds keep their secrets, and what is no host's: never reached, whatever is allowed.
fn is_never_reached(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_link_local()
                || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            let inner = v6.to_ipv4_mapped().or_else(|| carried(v6));
            v6.is_unspecified()
                || v6.is_multicast()
                || first & 0xffc0 == 0xfe80
                || first & 0xffc0 == 0xfec0
                || inner.is_some()
        }
    }
}

/// The IPv4 address in one that leads there through a translator or a tunnel: NAT64, 6to4, Teredo, ISATAP, or written as translated or compatible.
fn carried(v6: std::net::Ipv6Addr) -> Option<std::net::Ipv4Addr> {
    let s = v6.segments();
    let last = || std::net::Ipv4Addr::from((u32::from(s[6]) << 16) | u32::from(s[7]));
    match s {
        [0x64, 0xff9b, ..] => Some(last()),
        [0x2002, a, b, ..] => Some(std::net::Ipv4Addr::from((u32::from(a) << 16) | u32::from(b))),
        // Teredo hides it by turning its bits over.
        [0x2001, 0, ..] => Some(std::net::Ipv4Addr::from(!u32::from(last()))),
        [0, 0, 0, 0, 0xffff, 0, _, _] | [_, _, _, _, 0 | 0x200, 0x5efe, _, _] => Some(last()),
        [0, 0, 0, 0, 0, 0, _, _] if !v6.is_loopback() && !v6.is_unspecified() => Some(last()),
        _ => None,
    }
}

fn is_public(address: IpAddr) -> bool {
    if is_never_reached(address) {
        return false;
    }
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let special = (a == 192 && b == 0 && c == 0) || (a == 198 && (b == 18 || b == 19)) || a >= 240;
            !(v4.is_loopback() || v4.is_private() || v4.is_documentation() || shared || special)
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            let documentation = first == 0x2001 && v6.segments()[1] == 0xdb8;
            !(v6.is_loopback() || first & 0xfe00 == 0xfc00 || documentation)
        }
    }
}

/// Whether an address that stands in the configuration is meant as it is.
pub(crate) fn is_literal(url: &Url) -> bool {
    !matches!(url.host(), Some(Host::Domain(_)) | None)
}

/// The addresses that pass, if all of them do: a name that leads to one that does not is refused as a whole.
pub(crate) fn all_pass(config: &ReceiverConfig, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
    if found.is_empty() {
        return Err("the name leads nowhere".to_owned());
    }
    match found.iter().find(|address| !config.may_reach(address.ip())) {
        Some(_) => {
            Err("the name leads to an address that is not public, and that the receiver does not allow"
                .to_owned())
        }
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(more: &str) -> ReceiverConfig {
        toml::from_str(&format!("type = \"webhook\"\nurl = \"https://example.org/x\"\n{more}")).unwrap()
    }

    #[test]
    fn no_address_of_this_network_is_reached_without_being_allowed() {
        let plain = receiver("");
        let closed = [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "::ffff:0:127.0.0.1",
            "::ffff:0:a9fe:a9fe",
            "2001:0:4136:e378:8000:63bf:5601:5601",
            "2001::1",
            "2001:470:1:2:0:5efe:10.0.0.1",
            "2606:2800:220:1:200:5efe:a9fe:a9fe",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
        ];
        for address in closed {
            let address: IpAddr = address.parse().unwrap();
            assert!(!plain.may_reach(address), "{address}");
            let public: IpAddr = "93.184.216.34".parse().unwrap();
            let found = [public, address].map(|ip| SocketAddr::new(ip, 443)).to_vec();
            assert!(all_pass(&plain, found).is_err(), "one of two is enough: {address}");
        }
        for address in ["93.184.216.34", "2606:2800:220:1::1", "172.32.0.1", "100.128.0.1"] {
            assert!(plain.may_reach(address.parse().unwrap()), "{address}");
        }
        let allowing = receiver("allow = [\"10.0.0.0/8\", \"0.0.0.0/0\", \"fd00::/8\", \"::/0\"]");
        for address in ["10.1.2.3", "127.0.0.1", "fd00::5", "::1"] {
            assert!(allowing.may_reach(address.parse().unwrap()), "{address}");
        }
        for address in
            ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe"]
        {
            assert!(!allowing.may_reach(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_receiver_is_no_metadata_service_however_it_is_written() {
        let check = |url: &str| {
            let text = format!("type = \"webhook\"\nurl = \"{url}\"");
            toml::from_str::<ReceiverConfig>(&text).is_ok_and(|config| config.check().is_ok())
        };
        for url in [
            "http://169.254.169.254/",
            "http://2852039166/",
            "http://0xa9fea9fe/",
            "http://0251.0376.0251.0376/",
            "http://[::ffff:169.254.169.254]/",
            "http://0/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "https://user:secret@example.org/",
        ] {
            assert!(!check(url), "{url}");
        }
        assert!(check("https://example.org/hook") && check("http://127.0.0.1:9093/"));
    }

    #[test]
    fn unknown_keys_are_refused_and_the_listener_has_its_own() {
        let config: IncidentsConfig = toml::from_str("listen = \"127.0.0.1:0\"\nat_once = 0").unwrap();
        assert_eq!((config.settings.at_once, config.listen.listen.port()), (0, 0));
        let config: IncidentsConfig = toml::from_str("").unwrap();
        assert_eq!(config.listen.listen.to_string(), LISTEN);
        assert!(toml::from_str::<IncidentsConfig>("at_onc = 0").unwrap_err().to_string().contains("at_onc"));
        assert!(toml::from_str::<IncidentsConfig>("lease_secs = 0").is_err());
    }

    #[test]
    fn ranges_hold_what_they_should() {
        let range = |text: &str| -> Range { Range::deserialize(Value::String(text.to_owned())).unwrap() };
        let holds = |text: &str, address: &str| range(text).holds(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe80::1") && holds("::1/128", "::1"));
        for bad in ["10.0.0.0", "10.0.0.0/33", "x/8", "::/129"] {
            assert!(Range::deserialize(Value::String(bad.to_owned())).is_err(), "{bad}");
        }
    }
}
