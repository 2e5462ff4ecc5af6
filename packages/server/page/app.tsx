/** @jsxImportSource preact */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { ask, signedOut } from './ask.ts'
import { AuditView } from './audit.tsx'
import { CallDetail } from './call.tsx'
import { CallsView } from './calls.tsx'
import { NowView } from './now.tsx'
import { PeopleView } from './people.tsx'
import { linkTo, type Place, usePlace } from './place.ts'
import { ProductsView } from './product-view.tsx'
import { SettingsView } from './settings.tsx'
import { SignIn } from './sign-in.tsx'

/** The views, in the order of the digits that lead to them. */
const views = [
  ['now', 'Now'],
  ['calls', 'Calls'],
  ['people', 'People'],
  ['products', 'Products'],
  ['audit', 'Audit log'],
  ['settings', 'Settings'],
] as const

export function App() {
  const [operator, setOperator] = useState<string | undefined | null>(undefined)
  useEffect(() => {
    const leave = () => setOperator(null)
    signedOut.addEventListener('signed-out', leave)
    ask<{ signed_in: boolean; name: string }>('session').then(
      ({ signed_in: isIn, name }) => setOperator(isIn ? name : null),
      leave,
    )
    return () => signedOut.removeEventListener('signed-out', leave)
  }, [])
  if (operator === undefined) return null
  if (operator === null) return <SignIn onSignedIn={setOperator} />
  return <Shell operator={operator} onLeft={() => setOperator(null)} />
}

function Shell({ operator, onLeft }: { operator: string; onLeft: () => void }) {
  const place = usePlace()
  // Before it is painted: a key that is pressed at the first sight of the page counts.
  useLayoutEffect(() => {
    addEventListener('keydown', byKey)
    return () => removeEventListener('keydown', byKey)
  }, [])

  async function leave(): Promise<void> {
    await ask('session', { method: 'DELETE' }).catch(() => {})
    onLeft()
  }

  return (
    <div class="shell">
      <nav class="side" aria-label="Views">
        <div class="brand">
          <img src="icon.svg" alt="" />
          Ringwire
        </div>
        {views.map(([path, title]) => (
          <a key={path} href={linkTo([path])} aria-current={place.parts[0] === path ? 'page' : undefined}>
            {title}
          </a>
        ))}
        <div class="foot">
          <span class="keys">Keys: 1 to {views.length} for a view, / to search</span>
          <span>{operator === '' ? 'Signed in' : operator}</span>
          <button type="button" class="quiet" onClick={leave} data-testid="leave">
            Sign out
          </button>
        </div>
      </nav>
      <main>
        <View place={place} />
      </main>
    </div>
  )
}

function View({ place }: { place: Place }) {
  const [view, product, id] = place.parts
  switch (view) {
    case 'calls':
      if (product !== undefined && id !== undefined) return <CallDetail product={product} id={id} />
      return <CallsView place={place} />
    case 'people':
      return <PeopleView place={place} />
    case 'products':
      return <ProductsView place={place} />
    case 'settings':
      return <SettingsView />
    case 'audit':
      return <AuditView place={place} />
    default:
      return <NowView />
  }
}

/** A digit leads to a view, and / into its search; not where somebody types. */
function byKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement | null
  if (event.ctrlKey || event.metaKey || event.altKey || target?.closest('input, textarea, select')) return
  const view = views[Number(event.key) - 1]
  if (view !== undefined) location.hash = linkTo([view[0]])
  if (event.key !== '/') return
  const search = document.querySelector<HTMLInputElement>('[data-search]')
  if (search === null) return
  event.preventDefault()
  search.focus()
}
