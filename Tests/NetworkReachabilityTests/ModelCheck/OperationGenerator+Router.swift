internal import NetwatchTestSupport

extension OperationGenerator {
    /// The routes that a router advertises. They cover the watched hosts behind the gateways.
    private static let prefixes = [
        "2001:db8:ffff::/48", "2001:db8:ffff:1::/64", "2001:db8:ffff::7/128", "2000::/3",
    ]

    /// Lifetimes in seconds: removed, expired during the run, longer than the run, unlimited.
    private static let lifetimes: [UInt32] = [0, 1, 2, 2, 1800, .max]

    /// Advertises routes, and later the same routes with other lifetimes.
    mutating func routerOperation() -> Operation {
        let cable = cable()
        let first = number(below: 500)
        let advertised =
            one([
                .router, .route(one(Self.prefixes)), .onLink("2001:db8:ffff:1::/64"), .many(first: first),
            ]) as Advertised
        return inTurn(
            advertise(advertised, cable),
            advertise(advertised, cable),
            advertise(advertised, cable)
        )
    }

    private enum Advertised {
        /// The router itself: a default route.
        case router
        case route(String)
        case onLink(String)
        /// A thousand routes, one of which covers a watched host.
        case many(first: Int)
    }

    private mutating func advertise(_ advertised: Advertised, _ cable: Cable) -> Operation {
        let lifetime = one(Self.lifetimes)
        let advertisements: [RouterAdvertisement] =
            switch advertised {
            case .router: [RouterAdvertisement(routerLifetime: UInt16(clamping: lifetime))]
            case .route(let prefix): [RouterAdvertisement(routes: [.init(prefix, lifetime: lifetime)])]
            case .onLink(let prefix):
                [RouterAdvertisement(onLinkPrefixes: [.init(prefix, lifetime: lifetime)])]
            case .many(let first): RouterAdvertisement.thousand(first, lifetime: lifetime)
            }
        // The address may have been removed together with its link.
        let address = Operation.Step.far("addr replace fe80::2/64 dev \(cable.far) nodad")
        return Operation([address] + advertisements.map { .advertise($0, from: cable.far) })
    }
}

extension RouterAdvertisement {
    /// Returns advertisements of a thousand routes to `2001:db8:ffff:N::/64`, of which one covers the watched host
    /// `2001:db8:ffff:1::9`. Each advertisement fits in one frame.
    fileprivate static func thousand(_ first: Int, lifetime: UInt32) -> [RouterAdvertisement] {
        (0..<20).map { part in
            let numbers = (0..<50).map { part == 0 && $0 == 0 ? 1 : 0x1000 + first + 50 * part + $0 }
            return RouterAdvertisement(
                routes: numbers.map {
                    .init("2001:db8:ffff:\(String($0, radix: 16))::/64", lifetime: lifetime)
                }
            )
        }
    }
}
