// An anonymous XMPP client over WebSocket (RFC 7395): each frame is a stanza. A client's id is the address that it is given.
import { candidate } from '../candidate.ts'
import { type Client, type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

export const XMPP_HOST = 'bench.localhost'

const OPEN = `<open xmlns="urn:ietf:params:xml:ns:xmpp-framing" to="${XMPP_HOST}" version="1.0"/>`
const LOGIN = '<auth xmlns="urn:ietf:params:xml:ns:xmpp-sasl" mechanism="ANONYMOUS"/>'
const BIND =
  '<iq xmlns="jabber:client" type="set" id="bind">' +
  '<bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"><resource>bench</resource></bind></iq>'

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text that the predefined entities of XML stand in for. */
export function unescapeXml(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_entity, name: string) => ENTITIES[name]!)
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

/** The value of an attribute of the first element, or what the first element of a name holds. */
const attributeOf = (stanza: string, name: string) => new RegExp(`^<[^>]* ${name}=["']([^"']*)`).exec(stanza)?.[1]
const elementOf = (stanza: string, name: string) =>
  new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`).exec(stanza)?.[1]

/** The next stanza; its name has to be this one. */
async function next({ socket }: Client, name: string): Promise<string> {
  const stanza = await socket.next()
  if (!stanza.startsWith(`<${name}`)) throw new Error(`XMPP: a ${name} was due, not ${stanza.slice(0, 100)}`)
  return stanza
}

async function openStream(client: Client): Promise<void> {
  client.socket.send(OPEN)
  await next(client, 'open')
  await next(client, 'stream:features')
}

export const xmpp: Dialect = {
  credentials: async (_port, ids) => ids.map(() => ''),
  upgradeRequest: (port) => upgradeHead(port, '/xmpp-websocket', ['Sec-WebSocket-Protocol: xmpp']),
  async ready(client) {
    await openStream(client)
    client.socket.send(LOGIN)
    await next(client, 'success')
    await openStream(client)
    client.socket.send(BIND)
    const address = elementOf(await next(client, 'iq'), 'jid')
    if (address === undefined) throw new Error('XMPP: no address was given')
    client.id = address
  },
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage(pair, from) {
    // JSON in a message: XEP-0335.
    const json = escapeXml(JSON.stringify({ call_uuid: pair.callUuid, candidate }))
    const to = pair[other(from)].id
    return `<message xmlns="jabber:client" to="${to}"><json xmlns="urn:xmpp:json:0">${json}</json></message>`
  },
  wrongWith(stanza, pair, from) {
    if (!stanza.startsWith('<message')) return `the stanza ${stanza.slice(0, 20)}`
    const [sender, receiver] = [attributeOf(stanza, 'from'), attributeOf(stanza, 'to')]
    if (sender !== pair[from].id || receiver !== pair[other(from)].id) return 'a message for somebody else'
    const message = members(JSON.parse(unescapeXml(elementOf(stanza, 'json') ?? 'null')))
    return sameCandidate(message.candidate, candidate)
  },
  harmless: () => false,
  leave: async () => {},
  heartbeat: null,
}
