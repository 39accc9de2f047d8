"""Differences of properties: what a property becomes, and where the values of its column come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_omnigraph.catalog.identity import LANCE_COLUMNS, Kind, TableKey
from spark_omnigraph.catalog.migration.matching import Match, leftover, pair_by_name
from spark_omnigraph.catalog.migration.metadata import metadata_step
from spark_omnigraph.catalog.migration.steps import (
    AddEnum,
    AddProperty,
    DropMode,
    DropProperty,
    ExtendEnum,
    Fill,
    FromColumn,
    NarrowEnum,
    RelaxProperty,
    RemoveEnum,
    RenameProperty,
    RequireProperty,
    SchemaStep,
    Unsupported,
    UpdatePropertyMetadata,
    WidenProperty,
)
from spark_omnigraph.catalog.types import EntityType, InterfaceType, Property, PropType, Scalar
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.words import nearest

_WIDER: Mapping[Scalar, tuple[Scalar, ...]] = {
    Scalar.I32: (Scalar.I64, Scalar.F64),
    Scalar.U32: (Scalar.I64, Scalar.U64),
    Scalar.F32: (Scalar.F64,),
}
"""The types that hold every value of a type exactly."""
Values = Mapping[tuple[TableKey, str], Fill]
"""Values for stored rows, by the table and the property in the desired schema."""
_V1 = "is not supported in schema migration v1"
_Owner = EntityType | InterfaceType


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """Where a property of the desired type gets the values of stored rows: from the column `stored`, whose type was
    `old`; where there is none, or null in it, from `fill`; else they are null.
    """

    prop: Property
    stored: str | None = None
    old: PropType | None = None
    fill: Fill | None = None

    @property
    def is_untouched(self) -> bool:
        """Whether the column stays as it is, name and values."""
        same_type = self.old is not None and self.old.scalar is self.prop.type.scalar
        return self.fill is None and self.stored == self.prop.name and same_type


class PropertyPlanner:
    """Plans the properties of one type that stays."""

    def __init__(
        self, kind: Kind, old: EntityType | InterfaceType, new: EntityType | InterfaceType, values: Values
    ) -> None:
        self._kind: Kind = kind
        self._owner = new.name
        self._table_key = TableKey(f"{kind}:{new.name}")
        self._accepted = {each.name: each for each in old.properties}
        self._identity = () if isinstance(old, InterfaceType) else old.identity
        self._key: tuple[str, ...] = () if isinstance(new, InterfaceType) else new.key or ()
        self._has_rows = not isinstance(new, InterfaceType)
        self._values = values
        desired = {each.name: each for each in new.properties}
        self._matches = pair_by_name("property", self._accepted, desired, f"{new.name}.")
        self.renames = {m.old.name: m.new.name for m in self._matches if m.old is not None}
        """New names by the old ones of the properties that stay."""

    def steps(self, mode: DropMode) -> Iterator[SchemaStep]:
        """Properties that stay or come, in name order, then those that go."""
        for each in self._matches:
            yield from self._property(each)
        for gone in leftover(self._accepted, self._matches):
            yield DropProperty(self._kind, self._owner, gone.name, mode)

    def sources(self) -> tuple[ColumnSource, ...]:
        """Of each property of the desired type, in its order."""
        found = []
        for each in self._matches:
            old = each.old
            stored, ptype = (None, None) if old is None else (old.name, old.type)
            found.append(ColumnSource(each.new, stored, ptype, self._fill(each.new)))
        return tuple(found)

    def _property(self, found: Match[Property]) -> Iterator[SchemaStep]:
        old, new = found.old, found.new
        place = f"{self._owner}.{new.name}"
        if found.refusal is not None:
            yield self._unsupported(new, found.refusal)
        if (old is None or found.is_rename) and new.name.lower() in LANCE_COLUMNS:
            yield self._unsupported(
                new, f"property name '{new.name}' is reserved for a column that Lance makes up ({place})"
            )
        elif old is not None:
            if found.is_rename:
                yield RenameProperty(self._kind, self._owner, old.name, new.name)
            yield from self._type(new, old.type)
            yield from metadata_step(
                old.annotations,
                new.annotations,
                self.renames,
                lambda notes: UpdatePropertyMetadata(self._kind, self._owner, new.name, notes),
                lambda reason: self._unsupported(new, f"{reason} on property '{place}' {_V1}"),
            )
        elif found.refusal is None:
            yield self._added(new)

    def _added(self, new: Property) -> SchemaStep:
        fill = self._fill(new)
        if new.type.nullable or fill is not None or not self._has_rows:
            return AddProperty(self._kind, self._owner, new.name, new.type, fill)
        place = f"{self._owner}.{new.name}"
        reason = f"adding required property '{place}' requires a backfill and {_V1}"
        way_out = (
            f"with values for stored rows it is made: --set '{place}=JSON' gives all of them one, and "
            f"--set '{place}=@OTHER' each what it has in the property OTHER"
        )
        return self._unsupported(new, reason, "OG-MF-103", way_out)

    def _type(self, new: Property, old: PropType) -> Iterator[SchemaStep]:
        place = (self._kind, self._owner, new.name)
        wanted = new.type
        if not self._bridged(new, old):
            reason = f"changing property type for '{self._owner}.{new.name}' from {old.display()} to {wanted.display()}"
            yield self._unsupported(new, f"{reason} {_V1}", "OG-MF-106")
            return
        if old.scalar is not wanted.scalar:
            yield WidenProperty(*place, old, wanted)
        before, after = old.enum_values, wanted.enum_values
        if before is None and after is not None:
            yield AddEnum(*place, after)
        elif before is not None and after is None:
            yield RemoveEnum(*place)
        elif before is not None and after is not None:
            added = tuple(each for each in after if each not in before)
            removed = tuple(each for each in before if each not in after)
            if added:
                yield ExtendEnum(*place, added)
            if removed:
                yield NarrowEnum(*place, removed)
        if old.nullable and not wanted.nullable:
            yield RequireProperty(*place, self._fill(new))
        elif wanted.nullable and not old.nullable:
            yield RelaxProperty(*place)

    def _bridged(self, new: Property, old: PropType) -> bool:
        """Whether stored values can stay: the id of a row is the text of its key, so keys stay whole numbers."""
        if not holds(new.type, old):
            return False
        return new.name not in self._key or old.scalar is new.type.scalar or new.type.scalar.is_integer

    def _fill(self, new: Property) -> Fill | None:
        """The value for stored rows; BadRequestError when it cannot be that of the property."""
        fill = self._values.get((self._table_key, new.name)) if self._has_rows else None
        place = f"{self._owner}.{new.name}"
        if fill is not None and new.type.scalar is Scalar.BLOB:
            raise BadRequestError(f"stored rows cannot be given values of the Blob '{place}'; load them afterwards")
        if isinstance(fill, FromColumn):
            source = self._stored_type(fill.column)
            if source is None:
                hint = nearest(fill.column, [*self._accepted, *self._identity])
                raise BadRequestError(f"'{place}' cannot be set to '@{fill.column}': there is no such property{hint}")
            if not holds(new.type, source):
                types = f"{source.display()} does not fit into {new.type.display()}"
                raise BadRequestError(f"'{place}' cannot be set to '@{fill.column}': {types}")
        return fill

    def _stored_type(self, column: str) -> PropType | None:
        stored = self._accepted.get(column)
        if stored is not None:
            return stored.type
        return PropType(Scalar.STRING) if column in self._identity else None

    def _unsupported(
        self, prop: Property, reason: str, code: str | None = None, way_out: str | None = None
    ) -> Unsupported:
        return Unsupported(f"{self._table_key}.{prop.name}", reason, code, way_out)


def holds(wanted: PropType, stored: PropType) -> bool:
    """Whether a type holds every value of another one exactly, apart from null and texts that are none of an enum."""
    if wanted.is_list != stored.is_list or wanted.dimension != stored.dimension:
        return False
    if wanted.scalar is stored.scalar:
        return True
    return not wanted.is_list and wanted.scalar in _WIDER.get(stored.scalar, ())
