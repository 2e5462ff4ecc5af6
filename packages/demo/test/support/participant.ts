import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'

export type Role = 'customer' | 'agent'
type Token = { token: string; ice_servers: { urls: string[]; username?: string }[] }

export type ParticipantOptions = {
  role: Role
  name?: string
  query?: string
  viewport?: { width: number; height: number }
  /** All that the browser loads and sends is kept, which costs more than the page itself. */
  keepsTraffic?: boolean
  /** What else is particular to the browser of this one. */
  contextOf?: (role: Role) => BrowserContextOptions
  /** Runs before the page is opened. */
  prepare?: (page: Page, role: Role) => Promise<void>
}

/** One person in a browser context of their own, who does everything through the page. */
export type Participant = {
  page: Page
  context: BrowserContext
  userId: string
  /** Token responses that the page has got. */
  tokens: Token[]
  /** Bodies of everything that the browser has loaded, and what it sent, with `keepsTraffic`. */
  traffic: string[]
  /** Errors of the page's own code. */
  errors: string[]
  call(peer: Pick<Participant, 'userId'>, type: 'audio' | 'video'): Promise<void>
  click(testId: string): Promise<void>
  /** `idle`: in no call; the end of the last one may still be shown. */
  phase(phase: 'idle' | 'calling' | 'connecting' | 'live'): Promise<void>
  incoming(): Promise<void>
  note(text: string): Promise<void>
  /** Keeps the next `call.ringing`, and all that comes after it, from the page until it is released. */
  holdRinging(): Promise<{ arrived: Promise<void>; release(): void }>
  close(): Promise<void>
}

const at = (testId: string) => `[data-testid=${testId}]`

function watch(page: Page, keepsTraffic = false): Pick<Participant, 'tokens' | 'traffic' | 'errors'> {
  const tokens: Token[] = []
  const traffic: string[] = []
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    // A failed load is the network's doing (a restarted service), not the page's.
    const isOfNetwork = /net::ERR_|^WebSocket (connection to|is already in CLOSING)/.test(message.text())
    if (message.type() === 'error' && !isOfNetwork) errors.push(message.text())
  })
  page.on('response', async (response) => {
    const isToken = response.url().endsWith('/demo/api/token') && response.ok()
    if (!isToken && !keepsTraffic) return
    const body = await response.text().catch(() => undefined)
    // The page went while it came: nobody can read it any more.
    if (body === undefined) return
    traffic.push(body)
    if (isToken) tokens.push(JSON.parse(body))
  })
  if (!keepsTraffic) return { tokens, traffic, errors }
  page.on('request', (request) => traffic.push(`${request.url()} ${request.postData() ?? ''}`))
  page.on('websocket', (socket) => {
    socket.on('framesent', ({ payload }) => traffic.push(String(payload)))
    socket.on('framereceived', ({ payload }) => traffic.push(String(payload)))
  })
  return { tokens, traffic, errors }
}

async function holdRinging(page: Page): Promise<{ arrived: Promise<void>; release(): void }> {
  const arrived = Promise.withResolvers<void>()
  const kept: (() => void)[] = []
  let state: 'waiting' | 'holding' | 'released' = 'waiting'
  await page.routeWebSocket(/\/v1\/ws/, (route) => {
    const server = route.connectToServer()
    server.onMessage((message) => {
      if (state === 'waiting' && String(message).includes('"call.ringing"')) {
        state = 'holding'
        arrived.resolve()
      }
      if (state === 'holding') kept.push(() => route.send(message))
      else route.send(message)
    })
  })
  return {
    arrived: arrived.promise,
    release() {
      state = 'released'
      for (const send of kept.splice(0)) send()
    },
  }
}

/** Opens the page and goes online under a name that no other test uses. */
export async function goOnline(browser: Browser, url: string, options: ParticipantOptions): Promise<Participant> {
  const context = await browser.newContext({
    viewport: options.viewport ?? { width: 1280, height: 800 },
    // Only this machine's own certificate is met.
    ignoreHTTPSErrors: true,
    ...options.contextOf?.(options.role),
  })
  // Shorter than a test may take, so that a failure says what it waited for.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const name = options.name ?? `${options.role} ${crypto.randomUUID().slice(0, 8)}`
  const watched = watch(page, options.keepsTraffic)
  await options.prepare?.(page, options.role)
  await page.goto(`${url}/demo/${options.query ?? ''}`)
  await page.fill(at('name'), name)
  await page.check(at(`role-${options.role}`), { force: true })
  await page.click(at('enter'))
  await page.waitForSelector(`${at('connection')}[data-state=online]`)
  const userId = name.toLowerCase().replaceAll(' ', '-')

  return {
    ...{ page, context, userId, ...watched },
    call: (peer, type) => page.click(`${at('person')}[data-user="${peer.userId}"] ${at(`call-${type}`)}`),
    click: (testId) => page.click(at(testId)),
    phase: async (phase) => {
      const phases = phase === 'idle' ? ':is([data-phase=idle], [data-phase=over])' : `[data-phase=${phase}]`
      await page.waitForSelector(`${at('stage')}${phases}`, { state: 'attached' })
    },
    incoming: async () => {
      await page.waitForSelector(`${at('incoming')}[open]`)
    },
    note: async (text) => {
      await page.waitForSelector(`${at('announcement')}:has-text("${text}")`, { state: 'attached' })
    },
    holdRinging: async () => {
      const held = await holdRinging(page)
      // The route takes hold of sockets that are opened from now on.
      await page.reload()
      await page.waitForSelector(`${at('connection')}[data-state=online]`)
      return held
    },
    close: () => context.close(),
  }
}

/** Opens every entry of the log, also those that come while it opens them. */
export async function openEntries(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const closed = document.querySelectorAll<HTMLDetailsElement>('[data-testid=log-list] details:not(:has(pre))')
    for (const details of closed) details.open = true
    return closed.length === 0
  })
}

/** The same person once more, in a tab of its own. */
export async function openSecondTab(person: Participant, role: Role): Promise<Page> {
  const page = await person.context.newPage()
  await page.goto(new URL('/demo/', person.page.url()).href)
  await page.fill(at('name'), person.userId.replace('-', ' '))
  await page.check(at(`role-${role}`), { force: true })
  await page.click(at('enter'))
  await page.waitForSelector(`${at('connection')}[data-state=online]`)
  return page
}

/** Two people online, able to call each other. */
export async function goOnlineTogether(
  browser: Browser,
  url: string,
  options: Omit<ParticipantOptions, 'role' | 'name'> & { names?: Record<Role, string> } = {},
) {
  const { names, ...both } = options
  const join = (role: Role) => goOnline(browser, url, { ...both, role, ...(names ? { name: names[role] } : {}) })
  const [customer, agent] = await Promise.all([join('customer'), join('agent')])
  return {
    customer,
    agent,
    async close() {
      await Promise.all([customer.close(), agent.close()])
      const errors = [...customer.errors, ...agent.errors]
      if (errors.length > 0) throw new Error(`Errors in the page: ${errors.join('; ')}`)
    },
  }
}

/** A call from one to the other, answered, with media at both sides. */
export async function connect(caller: Participant, callee: Participant, type: 'audio' | 'video'): Promise<void> {
  await caller.call(callee, type)
  await callee.incoming()
  await callee.click('accept')
  await Promise.all([caller.phase('live'), callee.phase('live')])
}
