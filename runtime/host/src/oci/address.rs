//! What kind of address an address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Services that hand credentials to whoever asks: AWS, GCP and Azure are link-local; these are not.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];
/// Kinds of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// Everything else.
    Public,
    /// This machine.
    Loopback,
    /// Private networks.
    Private,
    /// Link-local.
    LinkLocal,
    /// A cloud's metadata service.
    Metadata,
    /// Unspecified, multicast, broadcast.
    Special,
    /// What the operator's settings refuse.
    Refused,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a cloud metadata service",
            Self::Special => "an unspecified, multicast or broadcast address",
            Self::Refused => "an address of the cluster's own",
        })
    }
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64 or 6to4.
pub(super) fn embedded(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let v4 = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        (0, 0) if c == 0 && d == 0 && e == 0 && (f == 0xffff || (f == 0 && g != 0)) => v4(g, h),
        (0x64, 0xff9b) => v4(g, h),
        (0x2002, _) => v4(b, c),
        (_, _) => address,
    }
}

pub(super) fn range(address: IpAddr) -> Range {
    if METADATA.contains(&address) {
        return Range::Metadata;
    }
    match address {
        IpAddr::V4(v4) => match v4.octets() {
            [169, 254, ..] => Range::LinkLocal,
            [127, ..] => Range::Loopback,
            [10, ..] | [192, 168, ..] => Range::Private,
            [172, b, ..] if (16..32).contains(&b) => Range::Private,
            [100, b, ..] if (64..128).contains(&b) => Range::Private,
            [0, ..] => Range::Special,
            [a, ..] if a >= 224 => Range::Special,
            [_, ..] => Range::Public,
        },
        IpAddr::V6(v6) if v6.is_loopback() => Range::Loopback,
        IpAddr::V6(v6) if v6.is_unspecified() || v6.is_multicast() => Range::Special,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => Range::LinkLocal,
        IpAddr::V6(v6) if v6.is_unique_local() => Range::Private,
        IpAddr::V6(_) => Range::Public,
    }
}

pub(super) fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

pub(super) fn inside(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shift = |width: u8| u32::from(width.saturating_sub(bits));
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (a.to_bits() ^ n.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0,
        (IpAddr::V6(a), IpAddr::V6(n)) => (a.to_bits() ^ n.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0,
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}
