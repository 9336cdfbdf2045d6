internal import NIOHTTP1
internal import NetwatchEventLoop

/// What the resolver of the service knows.
extension QueueRoutes {
    var nameRoutes: [ControlRouter.Route] {
        [
            route(.GET, "/v1/names") { _ in
                try requireRunning()
                let names = ControlMessage.Names(NameResolver.shared.snapshot())
                return .json(names, encoder: ControlMessage.encoder)
            }
        ]
    }
}
