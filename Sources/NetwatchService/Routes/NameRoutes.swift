internal import NIOHTTP1
internal import NetwatchEventLoop

/// Routes for the state of the service's resolver.
extension QueueRoutes {
    var nameRoutes: [ControlRouter.Route] {
        [
            route(.GET, "/v1/names", access: .read) { _ in
                try requireRunning()
                let names = ControlMessage.Names(NameResolver.shared.snapshot())
                return .json(names, encoder: ControlMessage.encoder)
            }
        ]
    }
}
