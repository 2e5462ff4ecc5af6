// PeerServer as its package ships it; only its limit of 5,000 clients is raised, so that it never refuses one here.
import { PeerServer } from 'peer'

PeerServer({ host: '127.0.0.1', port: 0, path: '/', concurrent_limit: 20_000 }, (server) => {
  console.log(`PeerServer listens on http://127.0.0.1:${server.address().port}`)
})
