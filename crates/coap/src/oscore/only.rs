use alloc::boxed::Box;

use super::{Context, Protector, Which, guard::Shared};

/// Messages that are protected before the next bound of the sequence numbers is stored, at most.
const GAP: u32 = 1_000;

/// The one context of a layer, and how its bounds are stored. Layers that are made like that one have none.
pub(super) struct Only<S>(Option<(Context, S)>);

impl<S> Only<S> {
    pub(super) const fn of(context: Context, store: S) -> Self {
        Self(Some((context, store)))
    }
}

impl<S: FnMut(u64) -> bool + Send + Sync> Protector for Only<S> {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        let Some((context, store)) = &mut self.0 else { return };
        if !which.may_be(context) {
            return;
        }
        if !matches!(which, Which::Sent)
            && let Some(bound) = context.bound_to_store(GAP)
            && store(bound)
        {
            context.bound_is_stored(bound);
        }
        act(context);
    }
}

impl<S: FnMut(u64) -> bool + Send + Sync + 'static> Shared for Only<S> {
    fn share(&self) -> Box<dyn Shared> {
        Box::new(Self(None))
    }
}
