import type { Person } from '../backend/people.ts'
import type { CallType, Peer } from './backend.ts'
import { icon, make, paintAvatar } from './dom.ts'

type Row = { item: HTMLLIElement; about: HTMLElement; buttons: HTMLButtonElement[] }

/** Who is online. Rows are kept from one list to the next, so the focus stays where it is. */
export function createPeopleView(list: HTMLElement, empty: HTMLElement, onCall: (peer: Peer, type: CallType) => void) {
  const rows = new Map<string, Row>()

  function callButton(person: Person, type: CallType): HTMLButtonElement {
    const label = `${type === 'video' ? 'Video' : 'Audio'} call to ${person.display_name}`
    const attributes = { type: 'button', class: 'call-button', 'aria-label': label, title: label }
    const button = make(
      'button',
      { ...attributes, 'data-testid': `call-${type}` },
      icon(type === 'video' ? 'video' : 'phone'),
    )
    button.addEventListener('click', () => onCall(person, type))
    return button
  }

  function makeRow(person: Person, mayCall: boolean): Row {
    const avatar = make('span', { class: 'avatar', 'aria-hidden': 'true' })
    paintAvatar(avatar, person.display_name)
    const about = make('span', { class: 'person-about' })
    const name = make('span', { class: 'person-name' }, person.display_name)
    const buttons = mayCall ? [callButton(person, 'audio'), callButton(person, 'video')] : []
    const attributes = {
      class: 'person',
      'data-testid': 'person',
      'data-user': person.user_id,
      'data-role': person.role,
    }
    const item = make('li', attributes, avatar, make('span', { class: 'person-text' }, name, about), ...buttons)
    return { item, about, buttons }
  }

  return {
    render(people: Person[], me: Peer, callsAllowed: boolean): void {
      const others = people.filter(({ user_id, role }) => user_id !== me.user_id || role !== me.role)
      const callable = (person: Person) => person.role !== me.role
      others.sort((a, b) => Number(callable(b)) - Number(callable(a)))
      const seen = new Set<string>()
      for (const person of others) {
        const key = `${person.role}/${person.user_id}`
        seen.add(key)
        const row = rows.get(key) ?? makeRow(person, callable(person))
        rows.set(key, row)
        const devices = person.devices > 1 ? ` · ${person.devices} devices` : ''
        row.about.textContent = `${person.role}${devices}${callable(person) ? '' : ' · same role'}`
        for (const button of row.buttons) button.disabled = !callsAllowed
        if (list.children[seen.size - 1] !== row.item) list.insertBefore(row.item, list.children[seen.size - 1] ?? null)
      }
      for (const [key, { item }] of rows) {
        if (seen.has(key)) continue
        item.remove()
        rows.delete(key)
      }
      empty.hidden = others.some(callable)
    },
    clear(): void {
      list.replaceChildren()
      rows.clear()
    },
    /** Puts the focus back on the person whose call has ended. */
    focus(peer: Peer): void {
      const button = rows.get(`${peer.role}/${peer.user_id}`)?.buttons[0]
      button?.focus()
    },
  }
}
